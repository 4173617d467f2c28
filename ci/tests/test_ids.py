"""The lines of docs/api.md compute the ids that the service derives from names."""

import hashlib
import http.client
import json
import random
import re
import subprocess
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit

DOCUMENT = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
COUNT = 10_000
PATH = "/api/v1/project/acme/ids/createNewTeamOnProject"

PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SEPARATORS = " ._-"
PADDING = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
RANGES = {
    "other ASCII": [(0x21, 0x2C), (0x2F, 0x2F), (0x3A, 0x40), (0x5B, 0x5E), (0x60, 0x60), (0x7B, 0x7E)],
    "Latin": [(0xA1, 0x24F), (0x1E00, 0x1EFF)],
    "Greek": [(0x391, 0x3A1), (0x3B1, 0x3C9)],
    "Cyrillic": [(0x400, 0x481)],
    "Hebrew": [(0x5D0, 0x5EA)],
    "Arabic, with digits": [(0x621, 0x64A), (0x660, 0x669)],
    "Devanagari, with vowel signs": [(0x905, 0x939), (0x93E, 0x94D), (0x966, 0x96F)],
    "Thai": [(0xE01, 0xE3A), (0xE40, 0xE59)],
    "Georgian": [(0x10A0, 0x10C5), (0x10D0, 0x10FA)],
    "Ethiopic": [(0x1200, 0x1248)],
    "Kana": [(0x3041, 0x3096), (0x30A1, 0x30FA), (0xFF66, 0xFF9D)],
    "Han": [(0x4E00, 0x9FA5), (0x20000, 0x2A6D6)],
    "Hangul": [(0xAC00, 0xD7A3)],
    "letters and digits that look like ASCII": [(0xFF10, 0xFF19), (0xFF21, 0xFF5A), (0x1D400, 0x1D433), (0x1D7CE, 0x1D7FF)],
    "letters whose other case is ASCII": [(0x130, 0x131), (0x17F, 0x17F), (0x212A, 0x212A), (0x1E9E, 0x1E9E), (0xFB00, 0xFB06)],
    "numbers": [(0xB2, 0xB3), (0xBC, 0xBE), (0x2160, 0x2188), (0x2460, 0x249B)],
    "punctuation": [(0x2010, 0x2027), (0x2030, 0x205E), (0x3001, 0x3020)],
    "white space": [(0xA0, 0xA0), (0x2000, 0x200A), (0x3000, 0x3000)],
    "combining marks": [(0x300, 0x36F), (0xFE00, 0xFE0F)],
    "format characters": [(0xAD, 0xAD), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064), (0xFEFF, 0xFEFF), (0xE0020, 0xE007F)],
    "emoji": [(0x2600, 0x26FF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F1E6, 0x1F1FF)],
    "private use and unassigned": [(0xE000, 0xE0FF), (0xFFFD, 0xFFFF), (0x10FF00, 0x10FFFF)],
}  # fmt: skip


def block(language):
    return re.search(rf"```{language}\n(.+?)```", DOCUMENT, re.DOTALL)[1]


def rows():
    """The names and the ids of the table."""
    table = DOCUMENT.split("| name | id | note |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", table, re.MULTILINE)


def generated_names():
    chooser = random.Random("ids")
    alphabets = [[chr(point) for first, last in ranges for point in range(first, last + 1)] for ranges in RANGES.values()]

    def generated_name():
        one, two = chooser.sample(alphabets, 2)
        mixed = chooser.choice([[PLAIN, SEPARATORS], [PLAIN, SEPARATORS, one], [SEPARATORS, one, two], [one]])
        length = chooser.choice([1, 2, 3, 5, 8, 13, 30, 99, 100])
        name = "".join(chooser.choice(chooser.choice(mixed)) for _ in range(length))
        before, after = ("".join(chooser.choices(PADDING, k=chooser.choice([0, 0, 1, 3]))) for _ in range(2))
        return before + name + after

    names = []
    while len(names) < COUNT:
        name = generated_name()
        if any(unicodedata.category(character)[0] in "LN" for character in name):
            names.append(name)
    return names


def ids_in_python(names):
    code = compile(block("python"), "docs/api.md", "exec")
    ids = []
    for name in names:
        variables = {"hashlib": hashlib, "re": re, "name": name}
        exec(code, variables)
        ids.append(variables["id"])
    return ids


def ids_in_typescript(names):
    script = f"""
        import {{ createHash }} from "node:crypto";
        import {{ readFileSync }} from "node:fs";
        const ids = JSON.parse(readFileSync(0, "utf-8")).map((name) => {{ {block("ts")} return id; }});
        console.log(JSON.stringify(ids));
    """
    command = ["node", "--input-type=module", "--eval", script]
    return json.loads(subprocess.run(command, input=json.dumps(names), capture_output=True, check=True, text=True).stdout)


def ids_of_service(service, names):
    """Creates a team with each name. The 409 after a name with the same id contains the id."""
    headers = {"authorization": f"Bearer {service.key}", "prefer": "return=headers-only"}
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)
    ids = []
    for name in names:
        connection.request("POST", PATH, json.dumps({"teamName": name}), headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status in (204, 409), (name, body)
        ids.append(json.loads(body)["resource_id"] if body else response.headers["x-resource-id"])
    connection.close()
    return ids


def test_the_lines_compute_the_ids_of_the_table():
    names, ids = map(list, zip(*rows()))
    assert len(names) > 10
    assert ids_in_python(names) == ids
    assert ids_in_typescript(names) == ids


def test_the_lines_compute_the_ids_of_the_service(serve):
    names = generated_names()
    ids = ids_in_python(names)
    assert ids_in_typescript(names) == ids
    # The service takes some milliseconds for each name.
    assert ids_of_service(serve(), names[::5]) == ids[::5]
