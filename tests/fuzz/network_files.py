"""Files of networks, format by format."""

import gzip
import json as plain_json
from functools import cache
from importlib import import_module
from random import Random

import numpy as np
from random_networks import random_network

from fuzz.folders import folder
from fuzz.mutation import mutated
from fuzz.refusals import check_refusal
from leafwise.dynamic_network import DynamicNetwork
from leafwise.formats import arcs, dynamic_json, files, mixture_json
from leafwise.formats import json as own
from leafwise.learner import learn
from leafwise.mixture import Mixture
from leafwise.network import Network
from leafwise.search.leaf_search import LeafSearch

FORMATS = {
    "json": "json", "bif": "bif", "xmod": "xmod", "libra": "bn", "xmlbif": "xmlbif", "xdsl": "xdsl", "net": "net",
    "uai": "uai",
}  # fmt: skip
WORDS = {
    "json": b'{} [] null true -1 1e9 "" "leaf" "test" "arcs" "states" "to" "counts" "exponents" "probabilities" "ties"',
    "models": b'{} [] null 0 1 2 3 -1 1e9 "weight" "group" "members" "learned" "version" "lags" "window" "x1[t-1]"',
    "bif": b"network variable probability type discrete table default property // /* */ ; { } ( ) | , [ ]",
    "xmod": b"<Leaf> </Leaf> <Vertex> <Branch> <Values> <Probs> <State/> <!-- --> <![CDATA[ ]]> &lt; &#0; <?x?>",
    "libra": b"BN { } tree features table ( ) v0 v1_0 +v0_1 -v2_0 -inf inf v999999999_0 , 65000",
    "xmlbif": b"<TABLE> </TABLE> <GIVEN> <FOR> <OUTCOME/> <!-- --> <![CDATA[ ]]> &amp; &x; <!DOCTYPE <!ENTITY",
    "xdsl": b"<cpt> </cpt> <parents> <state/> <probabilities> </nodes> <deterministic/> &quot; <!-- -->",
    "net": b'net node potential states = data ( ) { } ; | % " discrete continuous class',
    "uai": b"BAYES MARKOV # 0 1 2 3 99999 65000",
}


@cache
def corpus(name: str) -> list[bytes]:
    """Sound files: networks of few variables, some with zeros, many states or one, or learned."""
    shapes = [(2,), (1, 2), (2, 3, 2), (2, 2, 2, 2), (4, 1, 3, 2), (12, 2)]
    networks = [random_network(k, shape, zeros=0.2 * (k % 2)) for k, shape in enumerate(shapes)]
    networks.append(learn(np.array([[k % 2, k % 3, (k % 2) * (k % 3)] for k in range(40)]), prior="bdeu:2"))
    networks += sharing_networks()
    module = import_module(f"leafwise.formats.{name}")
    return [module.dumps(network).encode() for network in networks]


@cache
def sharing_networks() -> tuple[Network, ...]:
    """Networks of Section 6: tests of a variable's own value, and leaves that share a distribution."""
    random = np.random.default_rng(6)
    first = random.integers(4, size=900)
    moved = (first + 1 + (random.random(900) < 0.4)) % 4
    often = [random.choice(4, 900, p=shares) for shares in ([0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1])]
    cases = np.stack([first, moved, np.where(first < 2, *often)], axis=1)
    made = [learn(cases, search=LeafSearch(f"CBIM{operators}")) for operators in ("O", "ORT")]
    assert "ties" in own.dumps(made[1])
    return tuple(made)


@cache
def models() -> list[bytes]:
    """Sound files of mixtures, of every version, and of networks of series."""
    pair = [random_network(k, (2, 3, 2)) for k in (1, 2)]
    chain = [learn(np.array([[k % 2, (k + place) % 3] for k in range(20)])) for place in range(3)]
    mixtures = [
        Mixture((pair[0],), (1.0,)),
        Mixture(tuple(random_network(2, (2, 3, 2)) for _ in range(2)), (0.5, 0.5), {}, (0, 0)),
        Mixture(sharing_networks(), (0.25, 0.75), {"cases": 900}),
        Mixture(tuple(chain), (0.2, 0.3, 0.5), {}, (0, 1, 0)),
        learn(np.array([[k % 2, k % 3, (k % 2) * (k % 3)] for k in range(40)]), networks=4),
    ]
    series = np.array([[k % 2, k * k % 3] for k in range(30)])
    texts = [dynamic_json.dumps(learn(series, lags=lags)) for lags in (1, 2)]
    return [text.encode() for text in [*map(mixture_json.dumps, mixtures), *texts]]


def check_model(random: Random) -> str:
    """A file of a mixture or of a network of series: what is read is saved and comes back, and can be asked."""
    data = random.choice(models())
    if random.random() < 0.6:
        data = plain_json.dumps(_changed(plain_json.loads(data), random)).encode()
    else:
        data = mutated(data, random, WORDS["models"].split(), models())
    try:
        model = files.any_model_of(data)
    except ValueError as error:
        check_refusal(error)
        return "refused"
    if isinstance(model, DynamicNetwork):
        again = files.any_model_of(dynamic_json.dumps(model).encode())
        assert isinstance(again, DynamicNetwork)
        assert (again.window, again.lags) == (model.window, model.lags)
        check_network(model.unroll(model.lags + 2))
    elif isinstance(model, Mixture):
        assert files.any_model_of(mixture_json.dumps(model).encode()) == model
        for member in model:
            check_network(member)
        if all(node is not None for member in model for node in member.nodes):
            cases = model.sample(5)
            assert cases.variables == model.variables
            assert np.isfinite(model.log_probabilities(cases)).all()
    else:
        check_network(model)
    return "accepted"


def reader(name: str):
    """The check of one format."""

    def check(random: Random) -> str:
        files_of_it = corpus(name)
        data = random.choice(files_of_it)
        if name == "json" and random.random() < 0.5:
            data = plain_json.dumps(_changed(plain_json.loads(data), random)).encode()
        else:
            data = mutated(data, random, WORDS[name].split(), files_of_it)
        return check_file(name, data)

    return check


def check_file(name: str, data: bytes) -> str:
    """Read it: a network that is one, or a refusal."""
    module = import_module(f"leafwise.formats.{name}")
    try:
        network = module.loads(data)
    except ValueError as error:
        check_refusal(error)
        return "refused"
    check_network(network)
    try:
        text = module.dumps(network)
    except ValueError as error:
        check_refusal(error)
    else:
        module.loads(text.encode())
    return "accepted"


def check_network(network: Network) -> None:
    """Distributions are distributions, and what is saved comes back."""
    for node in network.nodes:
        if node is not None:
            assert np.isfinite(node.probabilities).all()
            assert (node.probabilities >= 0).all()
            assert (abs(node.probabilities.sum(axis=1) - 1) < 2e-6).all()
    assert own.loads(own.dumps(network)) == network


VALUES = [
    *(None, True, -1, 0, 1, 2**31, 2**70, 10**400, 0.5, -0.5, 1e308, 1e-320, "", "x", "x0", "s0", "\ud800", "\x00"),
    *([], {}, [[]], [0.5, 0.5], {"to": 0}, {"leaf": 0}),
]


def _changed(document, random: Random):
    """A JSON document in which something is another thing, is gone or is there twice."""
    places = []
    todo = [document]
    while todo:
        here = todo.pop()
        items = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        places += [(here, key) for key, _ in items]
        todo += [value for _, value in items]
    for _ in range(random.choice([1, 1, 2, 3])):
        holder, key = random.choice(places)
        how = random.choice(["other", "other", "gone", "moved", "deep", "twice"])
        if (isinstance(holder, list) and key >= len(holder)) or (isinstance(holder, dict) and key not in holder):
            continue
        if how == "gone":
            del holder[key]
        elif how == "moved":
            other, place = random.choice(places)
            if isinstance(other, dict) and place in other:
                holder[key] = plain_json.loads(plain_json.dumps(other[place]))
        elif how == "deep":
            deep = []
            for _ in range(random.choice([10, 400])):
                deep = [deep]
            holder[key] = deep
        elif how == "twice" and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = random.choice(VALUES)
    return document


def check_packed(random: Random) -> str:
    """A packed file by its name: the bytes, or what is packed in them, are changed."""
    name = random.choice(list(FORMATS))
    data = random.choice(corpus(name))
    if random.random() < 0.5:
        data = gzip.compress(mutated(data, random, WORDS[name].split(), corpus(name)))
    else:
        data = mutated(gzip.compress(data), random, [b"\x1f\x8b\x08"], [b"\x1f\x8b"])
    path = folder() / f"network.{FORMATS[name]}.gz"
    path.write_bytes(data)
    try:
        check_network(files.load(path))
    except ValueError as error:
        check_refusal(error)
        assert str(path) in str(error)  # noqa: PT017
        return "refused"
    return "accepted"


ARCS = [b"a b\nb -> c\n", b"a, b\n# c\nc\n", b'"a b", c\n', b'{"format": "leafwise-network"}']


def check_arcs(random: Random) -> str:
    """Lists of arcs, orders and tiers."""
    read = random.choice([arcs.read_arcs, arcs.read_order, arcs.read_tiers])
    path = folder() / "arcs.txt"
    path.write_bytes(mutated(random.choice([*ARCS, corpus("json")[2]]), random, [b"->", b"a", b'"'], ARCS))
    try:
        read(path, random.choice([None, ("a", "b", "c")]))
    except ValueError as error:
        check_refusal(error)
        return "refused"
    return "accepted"
