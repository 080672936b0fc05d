//go:build race

package arrival

// raceEnabled: the model runs in one goroutine, so that the race detector finds nothing there and takes ten times as long.
const raceEnabled = true
