//go:build !race

package report

// flooded is how many folders the test of memory writes.
const flooded = 20_000
