//go:build race

package catalog

// raceEnabled: the race detector makes SQLite, which is translated C, twenty times slower.
const raceEnabled = true
