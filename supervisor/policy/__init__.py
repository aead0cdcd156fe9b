"""The policy language: load, check, merge, compile.

The stages, each in its own module: ``load`` (bytes to positioned nodes), ``check``
(nodes to the records of ``schema``), ``merge`` (extends, variables), ``deadrules``
(rules that cannot win), ``compile`` (to tuples), ``bpf`` (the seccomp program) and
``blob`` (to bytes for the native core). ``cache`` skips all of them when nothing
changed. Nothing is imported here: a warm start must not pay for YAML.
"""
