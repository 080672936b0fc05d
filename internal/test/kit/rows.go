package kit

import (
	"testing"
	"testing/synctest"
)

// Rows runs a table: each row is a subtest of that name.
func Rows[R any](t *testing.T, rows map[string]R, test func(t *testing.T, row R)) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) { test(t, row) })
	}
}

// ParallelBubble runs a test in a synctest bubble, together with other tests.
func ParallelBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// Bubble runs a subtest in a synctest bubble of its own.
func Bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}
