"""What the site holds beside the pages in docs: notebooks, the command line's help, the changelog, the JSON schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from leafwise.cli import cli

ROOT = Path(__file__).parents[2]
SCHEMA = "src/leafwise/formats/network.schema.json"
_HELP_WIDTH = 100


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Notebooks become pages; the changelog and the schema join them."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        text = notebook_page(json.loads(file.content_string))
        files.append(File.generated(config, file.src_uri.replace(".ipynb", ".md"), content=text))
    files.append(File.generated(config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    files.append(File.generated(config, Path(SCHEMA).name, abs_src_path=str(ROOT / SCHEMA)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page of the command line gets every command's help; links to files of the project are bent to the site's."""
    if page.file.src_uri == "command-line.md":
        return "\n\n".join([markdown, *help_sections(cli)])
    return markdown.replace(f"../{SCHEMA}", Path(SCHEMA).name)


def help_sections(command: click.Command, above: click.Context | None = None) -> Iterator[str]:
    """The help of a command and of those below it, each under its own heading."""
    settings = {**command.context_settings, "terminal_width": _HELP_WIDTH}
    context = click.Context(command, above, info_name="leafwise" if above is None else command.name, **settings)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
    for below in getattr(command, "commands", {}).values():
        yield from help_sections(below, context)


def notebook_page(notebook: dict[str, Any]) -> str:
    """A notebook as Markdown, with the outputs that are stored in it."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell))


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _output(output)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return f'<div class="picture">{"".join(data["image/svg+xml"])}</div>'
    text = "".join(output["text"] if "text" in output else data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"
