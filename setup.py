"""What pyproject.toml cannot say: the native module, and policies/ inside the package."""

from __future__ import annotations

from setuptools import find_packages, setup

setup(
    # a script of our own: a generated entry point costs a fourth of the start-up time
    scripts=["supervisor/cli/supervise"],
    cffi_modules=["supervisor/_build_ffi.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    packages=[*find_packages(include=["supervisor", "supervisor.*"]), "supervisor.policies"],
    package_dir={"supervisor.policies": "policies"},
    package_data={"supervisor": ["py.typed", "*.pyi"], "supervisor.policies": ["**/*.yaml"]},
)
