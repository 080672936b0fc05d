//go:build race

package readings

func init() { underRace = true }
