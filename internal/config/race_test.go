//go:build race

package config

func init() { underRace = true }
