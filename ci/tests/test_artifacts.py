"""Tests that the workflow uses only the files of a package whose digest it knows, whatever else is in the artifact.

The tests run the steps of .github/workflows/ci.yml.
"""

import hashlib
import os
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import yaml

JOBS = yaml.safe_load((Path(__file__).parents[2] / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]


def run(job, name, folder, digests):
    """Runs a step as GitHub does. Returns whether it has succeeded."""
    (step,) = [it for it in JOBS[job]["steps"] if it.get("name") == name]
    environment = {"PATH": os.environ["PATH"]} | {it: digests[it] for it in step["env"]}
    return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=environment, check=False).returncode == 0


def archive(path, folder, content):
    with tarfile.open(path, "w:gz") as file:
        entry = tarfile.TarInfo(f"{folder}/sam/template.yaml")
        entry.size = len(content)
        file.addfile(entry, BytesIO(content))


def package(folder, architecture):
    """Writes an artifact as the job `package` does. Returns the output of this job."""
    folder.mkdir()
    name = f"workspace-management-1.2.3-{architecture}"
    archive(folder / f"{name}.tar.gz", name, b"right")
    (folder / f"{name}.cdx.json").write_bytes(b"{}")
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    sums = "".join(f"{it}  {name}\n" for name, it in hashes.items())
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return hashlib.sha256(sums.encode()).hexdigest() + "  -"


def test_only_the_package_is_unpacked(tmp_path):
    digests = {"ARM64": package(tmp_path / "package", "arm64")}
    # `tar --file *.tar.gz` would read this archive, because its name is the first, and unpack what the second name says.
    archive(tmp_path / "package/workspace-management-0.0-arm64.tar.gz", "workspace-management-1.2.3-arm64.tar.gz", b"evil")
    for name in ["main/samconfig.toml", "sam/Function/bootstrap"]:
        (tmp_path / "package" / name).parent.mkdir(parents=True)
        (tmp_path / "package" / name).write_bytes(b"evil")
    assert run("deploy", "Unpack", tmp_path, digests)
    assert (tmp_path / "sam/template.yaml").read_bytes() == b"right"
    # What an artifact adds stays in its folder.
    assert [path.name for path in tmp_path.iterdir() if path.name != "package"] == ["sam"]
    assert [path.name for path in (tmp_path / "sam").iterdir()] == ["template.yaml"]


def test_a_changed_package_is_not_unpacked(tmp_path):
    digests = {"ARM64": package(tmp_path / "other", "arm64")}
    package(tmp_path / "package", "x86_64")
    assert not run("deploy", "Unpack", tmp_path, digests)


def test_a_release_has_only_the_packages(tmp_path):
    digests = {it.upper(): package(tmp_path / f"package-{it}", it) for it in ["arm64", "x86_64"]}
    archive(tmp_path / "package-arm64/workspace-management-0.0-arm64.tar.gz", "evil", b"evil")
    (tmp_path / "package-evil").mkdir()
    (tmp_path / "package-evil/evil.cdx.json").write_bytes(b"evil")
    assert run("release", "Collect the files", tmp_path, digests)
    expected = {f"workspace-management-1.2.3-{it}.{kind}" for it in ["arm64", "x86_64"] for kind in ["tar.gz", "cdx.json"]}
    assert {path.name for path in (tmp_path / "release").iterdir()} == expected
