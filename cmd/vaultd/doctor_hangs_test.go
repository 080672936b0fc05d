// This test is inside the package: it hangs a try, as a dead file server would.
package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A try that hangs, as on a file server that is dead, is given up and told.
func TestDoctor_TryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, began := make(chan struct{}), time.Now()
		got := tryWithTimeout(t.Context(), "drop", "acme", func(context.Context) []tried { <-release; return nil })
		if took := time.Since(began); len(got) != 1 || got[0].Result != "FAIL" || got[0].Name != "acme" || took > 10*time.Second+time.Second {
			t.Errorf("after %v: %+v", took, got)
		}
		close(release)
	})
}
