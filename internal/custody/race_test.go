//go:build race

package custody

func init() { underRace = true }
