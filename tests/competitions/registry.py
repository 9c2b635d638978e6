"""The competitions by name: what makes the folder and what grades the submission."""
from collections.abc import Callable
from dataclasses import dataclass

from files import Folder
from grading import Rules


@dataclass(frozen=True)
class Competition:
    """One folder that can be made and graded."""

    name: str
    make: Callable[[Folder], None]
    rules: Rules


COMPETITIONS: dict[str, Competition] = {}


def competition(name, rules):
    """Registers the function below it as the maker of the folder `name`."""

    def register(make):
        COMPETITIONS[name] = Competition(name, make, rules)
        return make

    return register
