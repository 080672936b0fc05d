//go:build race

package packager

func init() { underRace = true }
