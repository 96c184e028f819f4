"""Settings: where their defaults come from, what is refused and when."""
import importlib.metadata
import os
import subprocess
import sys

import numpy
import pytest

import zcore.config


@pytest.fixture
def unset(monkeypatch):
    """Forget what was looked up before, and the environment."""
    monkeypatch.setattr(zcore.config, "_threads", None)
    monkeypatch.delenv("ZCORE_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return monkeypatch


def write_group(root, own_lines, files):
    """Write a copy of /proc/self/cgroup and a tree of control groups; return the arguments of `cgroup_quota`."""
    for name, text in files.items():
        path = root / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "own").write_text(own_lines)
    return str(root / "own"), str(root / "groups")


def test_threads_default_to_the_cpus_that_may_be_used(unset):
    assert zcore.config.threads == zcore.config.available_cpus() >= 1


def test_affinity_bounds_the_cpus(unset):
    unset.setattr(os, "sched_getaffinity", lambda pid: {1, 4, 5}, raising=False)
    unset.setattr(zcore.config, "cgroup_quota", lambda: None)
    assert zcore.config.available_cpus() == 3


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (1, 1), (3, 3), (9, 4), (0, 1)])
def test_quota_bounds_the_cpus(unset, quota, expected):
    unset.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    unset.setattr(zcore.config, "cgroup_quota", lambda: quota)
    assert zcore.config.available_cpus() == expected


def test_without_affinity_the_machine_is_counted(unset):
    unset.delattr(os, "sched_getaffinity", raising=False)
    unset.setattr(os, "cpu_count", lambda: None)
    unset.setattr(zcore.config, "cgroup_quota", lambda: None)
    assert zcore.config.available_cpus() == 1


@pytest.mark.parametrize(("own", "files", "expected"), [
    ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
    ("0::/\n", {"cpu.max": "max 100000\n"}, None),
    ("0::/\n", {}, None),
    ("0::/a/b\n", {"cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n", "a/b/cpu.max": "700000 100000\n"}, 2),
    ("0::/a/b\n", {"a/b/cpu.max": "50000 100000\n"}, 1),
    ("0::/../..\n", {"cpu.max": "300000 100000\n"}, 3),
    ("3:cpu,cpuacct:/job\n2:memory:/job\n",
     {"cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}, 3),
    ("3:cpu:/gone\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 2),
    ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ("3:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "100000\n", "cpuset/cpu.cfs_period_us": "100000\n"}, None),
    ("0::/\n", {"cpu.max": "100000 0\n"}, None),
    ("0::/\n", {"cpu.max": "100000\n"}, None),
    ("0::/\n", {"cpu.max": "\n"}, None),
    ("nonsense\n\n", {"cpu.max": "100000 100000\n"}, None),
])
def test_quota_of_control_groups(tmp_path, own, files, expected):
    assert zcore.config.cgroup_quota(*write_group(tmp_path, own, files)) == expected


def test_quota_without_control_groups(tmp_path):
    assert zcore.config.cgroup_quota(str(tmp_path / "none"), str(tmp_path)) is None


def test_environment_sets_threads(unset):
    unset.setenv("ZCORE_NUM_THREADS", " 3 ")
    assert zcore.config.threads == 3


def test_empty_environment_variable_is_none(unset):
    unset.setenv("ZCORE_NUM_THREADS", "")
    assert zcore.config.threads == zcore.config.available_cpus()


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "٣", "1_0", "9" * 5000])
def test_bad_number_of_threads_in_the_environment_is_named(unset, text):
    unset.setenv("ZCORE_NUM_THREADS", text)
    with pytest.raises(ValueError, match="ZCORE_NUM_THREADS must be an integer of at least 1"):
        _ = zcore.config.threads


@pytest.mark.parametrize("text, expected", [
    ("1", 1), (" 2,4", 2), ("99999", None), ("many", None), ("0", None), ("", None),
])
def test_threads_of_openmp_are_heeded(unset, monkeypatch, text, expected):
    monkeypatch.setattr(zcore.config, "available_cpus", lambda: 3)
    unset.setenv("OMP_NUM_THREADS", text)
    assert zcore.config.threads == (expected or 3)


def test_setting_threads_wins_over_the_environment(unset):
    unset.setenv("ZCORE_NUM_THREADS", "nonsense")
    zcore.config.threads = numpy.int64(7)
    assert zcore.config.threads == 7
    assert type(zcore.config.threads) is int


@pytest.mark.parametrize("value", [0, -3])
def test_threads_below_one_are_refused(unset, value):
    zcore.config.threads = 2
    with pytest.raises(ValueError, match=f"at least 1, not {value}"):
        zcore.config.threads = value
    assert zcore.config.threads == 2


@pytest.mark.parametrize("value", [1.0, "2", None, True])
def test_threads_of_a_wrong_type_are_refused(unset, value):
    with pytest.raises(TypeError, match=f"not {type(value).__name__}"):
        zcore.config.threads = value


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(AttributeError, match="no setting 'thread'; it has threads, cache"):
        zcore.config.thread = 4


def test_bad_environment_does_not_break_the_import():
    environment = {**os.environ, "ZCORE_NUM_THREADS": "many", "ZCORE_CACHE": "much"}
    subprocess.run([sys.executable, "-c", "import zcore, zcore.config"], env=environment, check=True)


def test_get_include_is_the_folder_of_the_header():
    assert os.path.isfile(os.path.join(zcore.config.get_include(), "zcore.h"))


def test_show_config_returns_what_it_prints(capsys):
    config = zcore.config.show_config(mode="dicts")
    assert list(config) == ["zcore", "python", "numpy", "build", "libraries", "simd", "settings"]
    assert config["zcore"]["version"] == zcore.config.__version__
    assert config["numpy"]["version"] == numpy.__version__
    assert config["settings"]["threads"] == zcore.config.threads
    assert config["libraries"]["from"] == config["build"]["libraries"]
    assert {"c-blosc", "zstd", "lz4", "zlib"} < set(config["libraries"])
    assert zcore.config.show_config() is None
    printed = capsys.readouterr().out
    for section, values in config.items():
        assert f"{section}:\n" in printed
        assert all(f"  {name}: {value}\n" in printed for name, value in values.items())


def test_show_config_refuses_other_modes():
    with pytest.raises(ValueError, match="'stdout' or 'dicts', not 'json'"):
        zcore.config.show_config(mode="json")


def test_version_is_that_of_the_distribution():
    try:
        installed = importlib.metadata.version("zcore-array")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("zcore is not installed here, only on the path")
    assert installed == zcore.config.__version__


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("0", False), ("", False)])
def test_fsync_of_the_environment(monkeypatch, tmp_path, text, expected):
    monkeypatch.setattr(zcore.config, "_fsync", None)
    monkeypatch.setenv("ZCORE_FSYNC", text)
    assert zcore.config.fsync is expected
    assert zcore.create_array(tmp_path / "a", data=[1]).store.fsync is expected
    assert zcore.create_array(tmp_path / "b", data=[1], fsync=False).store.fsync is False
    assert zcore.DirectoryStore(tmp_path).fsync is expected
    monkeypatch.setattr(zcore.config, "fsync", not expected)
    assert zcore.open(tmp_path / "a", mode="r+").store.fsync is not expected


def test_fsync_is_a_bool(monkeypatch):
    monkeypatch.setattr(zcore.config, "_fsync", None)
    monkeypatch.setenv("ZCORE_FSYNC", "yes")
    with pytest.raises(ValueError, match="ZCORE_FSYNC must be 0 or 1, not 'yes'"):
        _ = zcore.config.fsync
    with pytest.raises(TypeError, match="must be a bool, not int"):
        zcore.config.fsync = 1


def test_own_settings_for_a_while():
    before = zcore.config.threads
    with zcore.config.set(threads=1), zcore.config.set({"write_empty_chunks": True}):
        assert (zcore.config.threads, zcore.config.get("threads"), zcore.config.write_empty_chunks) == (1, 1, True)
    assert (zcore.config.threads, zcore.config.write_empty_chunks) == (before, False)


def test_settings_of_which_one_is_wrong_change_nothing():
    before = zcore.config.threads
    with pytest.raises(TypeError, match="threads must be an int, not str"):
        zcore.config.set({"write_empty_chunks": True, "threads": "x"})
    assert (zcore.config.threads, zcore.config.write_empty_chunks) == (before, False)


@pytest.mark.parametrize("call", [
    lambda: zcore.config.get(5), lambda: zcore.config.get(None, 1), lambda: zcore.config[b"x"],
    lambda: 5 in zcore.config, lambda: zcore.config.set({5: 1}), lambda: zcore.config.set({"array": {5: 1}})])
def test_a_name_of_a_wrong_type_is_refused(call):
    with pytest.raises(TypeError, match="the name of a setting must be a str, not (int|NoneType|bytes)"):
        call()


@pytest.mark.parametrize("settings", [5, "array.order", [("array.order", "C")], []])
def test_settings_of_a_wrong_type_are_refused(settings):
    with pytest.raises(TypeError, match="settings must be a mapping of names to values, not (int|str|list)"):
        zcore.config.set(settings)


def test_a_setting_is_in_the_settings():
    names = "array", "array.order", "threads", "nope"
    assert [name in zcore.config for name in names] == [True, True, True, False]
