"""The competitions by name: what makes the folder and what grades the submission."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


from files import Folder
from grading import Rules

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Competition:
    """One folder that can be made and graded."""

    name: str
    make_files: Callable[[Folder], None]
    rules: Rules

    def make(self, folder):
        """Makes the folder, with the page that describes it."""
        folder.write("description.md", (PAGES / f"{self.name}.md").read_bytes())
        self.make_files(folder)


COMPETITIONS: dict[str, Competition] = {}


def competition(name, rules):
    """Registers the function below it as what makes the files of the folder `name`."""

    def register(make):
        COMPETITIONS[name] = Competition(name, make, rules)
        return make

    return register
