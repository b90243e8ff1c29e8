"""pyAgrum: networks to and from its objects, and by way of them XMLBIF, UAI, HUGIN NET and XDSL files. Its only door.

pyAgrum is optional and imported when asked for. Its writers keep six digits in some formats, and cannot write every
name: what they wrote is read again before it takes its place, and refused where it says something else.
"""

import os
import re
import tempfile
import warnings
from itertools import islice
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from leafwise.formats.tables import MOST_CELLS, complete_table, fitted, table_node
from leafwise.formats.whole_files import write_whole
from leafwise.network import Network
from leafwise.table import Variable

if TYPE_CHECKING:
    import pyagrum

_METHODS = {"XMLBIF": "BIFXML", "UAI": "UAI", "NET": "NET", "XDSL": "XDSL"}
_FAST_PROPERTY = re.compile(rb"\s*<PROPERTY>fast = .*?</PROPERTY>", re.DOTALL)
_QUOTE = {'"': "&quot;"}
_LARGEST_LOSS = 1e-5
_ANY = 2**62  # cells: these tables have been made before


def to_agrum(network: Network, most_cells: int = MOST_CELLS) -> "pyagrum.BayesNet":
    """A network as a pyagrum.BayesNet, its decision graphs as tables of at most `most_cells` cells."""
    gum = _pyagrum("to_agrum")
    tables = [complete_table(network, index, most_cells) for index in range(len(network.variables))]
    result = gum.BayesNet()
    try:
        for variable in network.variables:
            result.add(gum.LabelizedVariable(variable.name, variable.name, list(variable.labels)))
        for parent, child in network.arcs:
            result.addArc(parent, child)
    except gum.GumException as error:
        raise ValueError(f"pyAgrum does not take this network ({_one_line(error)}): rename what it names.") from None
    for index, table in enumerate(tables):
        # pyAgrum's arrays have the parents backwards, and the variable itself last.
        result.cpt(index)[:] = np.ascontiguousarray(table.transpose(*range(table.ndim - 2, -1, -1), table.ndim - 1))
    return result


def from_agrum(model: "pyagrum.BayesNet") -> Network:
    """A pyagrum.BayesNet as a network of complete tables; its variables keep their order."""
    ids = sorted(model.nodes())
    number = {node: k for k, node in enumerate(ids)}
    variables = tuple(Variable(model.variable(node).name(), tuple(model.variable(node).labels())) for node in ids)
    n_states = [variable.n_states for variable in variables]
    nodes = []
    for variable, node in zip(variables, ids, strict=True):
        cpt = model.cpt(node)
        parents = [number[model.idFromName(name)] for name in reversed(cpt.names[1:])]
        table = np.asarray(cpt.toarray(), np.float64)
        rows = fitted(table.reshape(-1, variable.n_states))
        if np.isnan(rows).any():
            raise ValueError(f"the distribution of {variable.name!r} has rows that do not sum to one: normalise them.")
        nodes.append(table_node(parents, rows.reshape(table.shape), n_states))
    return Network(variables, tuple(nodes))


def save(network: Network, path: str | os.PathLike[str], kind: str, most_cells: int = MOST_CELLS) -> None:
    """Write a network to an XMLBIF, UAI, NET or XDSL file, which appears complete or not at all."""
    gum = _pyagrum(f"a {kind} file")
    model = to_agrum(_spelled(network, kind), most_cells)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "network"
        try:
            getattr(model, f"save{_METHODS[kind]}")(str(draft))
        except gum.GumException as error:
            raise ValueError(f"{os.fspath(path)}: pyAgrum cannot write this ({_one_line(error)}): rename it.") from None
        # pyAgrum reads the states 5, 4, 3 of its own "fast" property as 3, 4, 5; without it, as they are.
        text = _FAST_PROPERTY.sub(b"", draft.read_bytes())
        draft.write_bytes(text)
        if not _is_kept(network, draft, kind):
            raise ValueError(
                f"{os.fspath(path)}: {kind} cannot hold these names or states, and what pyAgrum writes would be read "
                f"otherwise: use names of letters and digits and two states or more, or save the network as BIF."
            )
        write_whole(path, text)


def load(path: str | os.PathLike[str], kind: str) -> Network:
    """Read a network from an XMLBIF, UAI, NET or XDSL file; a ValueError in one line when it cannot be read."""
    gum = _pyagrum(f"a {kind} file")
    with Path(path).open("rb"):  # a file that is not there says so itself
        model = gum.BayesNet()
    try:
        if kind == "UAI":
            _check_uai(Path(path).read_text(encoding="utf-8"))
        getattr(model, f"load{_METHODS[kind]}")(os.fsdecode(path))
        return from_agrum(model)
    except (gum.GumException, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)}: pyAgrum cannot read this as {kind} ({_one_line(error)}): check the file."
        ) from None


def _check_uai(text: str) -> None:
    """Refuse text that is not as long as it says: pyAgrum's reader may wait for the rest for ever."""
    words = iter(re.sub(r"#.*", "", text).split())
    try:
        if next(words) != "BAYES":
            raise ValueError("it does not begin with BAYES")
        sizes = [int(next(words)) for _ in range(int(next(words)))]
        members = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
        for own in members:
            due = prod(sizes[index] for index in own)
            if int(next(words)) != due or len([float(word) for word in islice(words, due)]) < due:
                raise ValueError(f"a table over {len(own)} variables has not {due} numbers")
    except (StopIteration, IndexError):
        raise ValueError("it breaks off, or names a variable that is not there") from None


def _spelled(network: Network, kind: str) -> Network:
    """The network with names and labels as the format wants them: pyAgrum writes them as they come."""
    if kind in ("XMLBIF", "XDSL"):
        variables = [
            Variable(escape(variable.name, _QUOTE), tuple(escape(label, _QUOTE) for label in variable.labels))
            for variable in network.variables
        ]
    elif kind == "NET":
        variables = [
            Variable(variable.name, tuple(f'"{label}"' for label in variable.labels)) for variable in network.variables
        ]
    else:
        return network
    return Network(tuple(variables), network.nodes)


def _is_kept(network: Network, draft: Path, kind: str) -> bool:
    """Whether a file is read as the network that was written, but for rounding and the order of the variables."""
    try:
        back = load(draft, kind)
    except ValueError:
        return False
    names = back.names if kind == "UAI" else network.names  # a UAI file has no names, and keeps the order
    if sorted(back.names) != sorted(names):
        return False
    number = {name: index for index, name in enumerate(back.names)}
    place = [number[name] for name in names]
    return all(_is_same(network, back, index, place, kind) for index in range(len(names)))


def _is_same(network: Network, back: Network, index: int, place: list[int], kind: str) -> bool:
    """Whether a variable has the same states and, in another order of the parents, the same table."""
    here, there = network.nodes[index], back.nodes[place[index]]
    one, other = network.variables[index], back.variables[place[index]]
    if (
        here is None
        or there is None
        or one.n_states != other.n_states
        or (kind != "UAI" and one.labels != other.labels)
    ):
        return False
    parents = [place[parent] for parent in here.parents]
    if tuple(sorted(parents)) != there.parents:
        return False
    table = complete_table(back, place[index], _ANY).transpose(*map(there.parents.index, parents), len(parents))
    return bool((abs(complete_table(network, index, _ANY) - table) <= _LARGEST_LOSS).all())


def _pyagrum(what: str) -> Any:
    try:
        with warnings.catch_warnings():  # it warns on the way in, and a warning made an error there ends the process
            warnings.simplefilter("ignore")
            import pyagrum
    except ModuleNotFoundError:
        raise ValueError(
            f"{what} needs the package pyagrum, which is not installed: pip install 'leafwise[pyagrum]'."
        ) from None
    return pyagrum


def _one_line(error: Exception) -> str:
    return " ".join(str(error).replace("[pyAgrum]", "").split())[:200]
