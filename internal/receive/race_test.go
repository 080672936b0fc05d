//go:build race

package receive

func init() { underRace = true }
