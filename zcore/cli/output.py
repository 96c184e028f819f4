"""A folder that a command writes to, and what in it is the command's own.

A small file beside the results lists what was made here. What it lists may be replaced by the next run; anything else
of a wanted name, and any folder with other people's files and no such list, is refused before a byte is written.
"""
import json
import os

LIST = "zcore-demo.json"


class Output:
    """A folder for results.

    Parameters
    ----------
    folder : str
        Made when it is missing.
    names : sequence of str
        Of what will be written.

    Raises
    ------
    FileExistsError
        Something is in the way that is not the command's own.
    """

    def __init__(self, folder, names):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        made = self._made_before()
        for name in names:
            if os.path.lexists(self.path(name)) and name not in made:
                raise FileExistsError(f"{self.path(name)} exists and was not made by zcore demo; "
                                      "choose another folder by --out")
        # Before the results: a run that is killed leaves nothing that the next one would refuse.
        temporary = self.path(f".{LIST}.{os.getpid()}")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"made by": "zcore demo", "made": sorted({*made, *names})}, file, indent=4)
        os.replace(temporary, self.path(LIST))

    def path(self, name):
        """Return the path of a result."""
        return os.path.join(self.folder, name)

    def _made_before(self):
        """Return the names that earlier runs made."""
        try:
            with open(self.path(LIST), encoding="utf-8") as file:
                made = json.load(file)["made"]
        except FileNotFoundError:
            if os.listdir(self.folder):
                raise FileExistsError(f"{self.folder} is not empty and was not made by zcore demo; "
                                      "choose another folder by --out") from None
            return []
        except (ValueError, KeyError, TypeError):
            made = None
        if not isinstance(made, list) or not all(isinstance(name, str) for name in made):
            raise FileExistsError(f"{self.path(LIST)} is not a list that zcore demo wrote; "
                                  "choose another folder by --out")
        return made
