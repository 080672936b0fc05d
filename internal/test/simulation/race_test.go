//go:build race

package simulation

func init() { underRace = true }
