"""Mixtures as one JSON file: the variables once, and the members as in network files, each with a weight.

{"format": "leafwise-mixture", "version": 1, "learned": {...}, "variables": [...],
 "members": [{"weight": 0.5, "prior": null, "structure_prior": "uniform", "learned": {...}, "nodes": [...]}, ...]}

Version 3 adds the "group" of each member; members of a group mix their nodes.
"""

from typing import Any

from leafwise.data.table import brief
from leafwise.formats.json import check_version, list_text, nodes_text, text, variable_entry, version_of
from leafwise.formats.json_reading import member_of, read_network
from leafwise.formats.tables import Room
from leafwise.mixture import Mixture
from leafwise.network import Network

FORMAT = "leafwise-mixture"
VERSION = 3


def dumps(mixture: Mixture) -> str:
    """The JSON text of a mixture."""
    grouped = len({*mixture.groups}) < len(mixture)
    head = {
        "format": FORMAT,
        "version": VERSION if grouped else version_of(mixture.members),
        "learned": dict(mixture.learned),
    }
    lines = [f" {text(key)}: {text(value)}," for key, value in head.items()]
    variables = [f"  {text(variable_entry(variable))}" for variable in mixture.variables]
    rows = zip(mixture.members, mixture.weights, mixture.groups, strict=True)
    members = [_member_text(member, weight, group if grouped else None) for member, weight, group in rows]
    lists = [f' "variables": {list_text(variables)},', f' "members": {list_text(members)}']
    return "\n".join(["{", *lines, *lists, "}", ""])


def _member_text(member: Network, weight: float, group: int | None) -> str:
    head = {
        "weight": weight,
        **({} if group is None else {"group": group}),
        "prior": member.prior,
        "structure_prior": member.structure_prior,
        "learned": dict(member.learned),
    }
    return f"{text(head)[:-1]}, {nodes_text(member)}}}"


def read_mixture(document: dict[str, Any], room: Room) -> Mixture:
    """The mixture in a parsed file."""
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= VERSION:
        raise ValueError(
            f'the "version" of the mixture is {brief(version)}, and this leafwise reads 1 to {VERSION}: upgrade it.'
        )
    variables = member_of(document, "variables", list, "file")
    entries = member_of(document, "members", list, "file")
    weights = [float(member_of(entry, "weight", float, f"members[{k}]")) for k, entry in enumerate(entries)]
    members = [read_network({**entry, "variables": variables}, room) for entry in entries]
    check_version(version, members)
    if version < VERSION and any("group" in entry for entry in entries):
        raise ValueError(
            f'members have a "group", which is for version {VERSION}: write that version, or leave them out.'
        )
    learned = member_of(document, "learned", dict, "file") if "learned" in document else {}
    groups = [member_of(entry, "group", int, f"members[{k}]") for k, entry in enumerate(entries) if version == VERSION]
    return Mixture(tuple(members), tuple(weights), learned, tuple(groups))
