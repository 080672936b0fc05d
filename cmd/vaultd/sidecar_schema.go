package main

import _ "embed"

// sidecarSchema is for the editors of those who write sidecars. The packager does not use it: it
// says more, and in a clerk's words. What the schema cannot say stands in its descriptions.
//
//go:embed sidecar.schema.json
var sidecarSchema []byte
