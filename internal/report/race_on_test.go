//go:build race

package report

// flooded is fewer under the race detector, which makes each of them take ten times as long.
const flooded = 2_000
