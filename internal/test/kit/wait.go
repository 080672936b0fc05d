package kit

import (
	"testing"
	"time"
)

// Await ends the test unless something holds in time: a process, a disk or a
// kernel says when. It asks again soon where the answer is quick, and spends at
// most a tenth of a core on it. Tests that virtual time can serve belong in its
// bubble.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const patience = 2 * time.Minute // other tests may keep the machine busy
	for began := time.Now(); time.Since(began) < patience; {
		asked := time.Now()
		if holds() {
			return
		}
		<-time.After(min(max(time.Millisecond, 10*time.Since(asked)), time.Second))
	}
	t.Fatalf("waited %v in vain for %s", patience, what)
}

// Waits marks a test that waits in real time, for about so many seconds,
// because neither an event nor virtual time can give what it waits for.
// "tools/longtests waits" prints the list. tools/lint reports a test that
// sleeps outside of a bubble of virtual time without this mark.
func Waits(t testing.TB, seconds float64, why string) {
	t.Helper()
	t.Logf("waits about %v s: %s", seconds, why)
}
