"""An operator written with kopf: what it sees, it says."""

import kopf


@kopf.on.create("v1", "configmaps", labels={"wanted": "yes"})
def made(body, patch, **_):
    patch.metadata.annotations["seen"] = body["data"]["a"]
