"""Puts the recipe for Kubernetes into a whole manifest and looks whether that is one.

Usage: manifest.py RECIPE [PACKAGES]: with PACKAGES, a folder in which kubernetes-validate is, by its schema too.
"""

import sys

import yaml

recipe = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
assert recipe["env"] == [
    {"name": "LD_PRELOAD", "value": "libsnug.so.0"},
    {"name": "SNUG_LIMIT", "value": "cgroup"},
], recipe
labels = {"app": "program"}
manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "program"},
    "spec": {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "program", "image": "program:1", **recipe}]},
        },
    },
}
if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
    import kubernetes_validate

    # Strict: a field that the schema does not know is a mistake.
    print("valid by the schema of", kubernetes_validate.validate(manifest, "1.27", strict=True))
print("parsed")
