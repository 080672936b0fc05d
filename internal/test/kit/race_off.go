//go:build !race

package kit

// Race reports whether the race detector is on, which slows tests down.
const Race = false
