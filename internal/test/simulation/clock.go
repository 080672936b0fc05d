package simulation

import (
	"fmt"
	"sync"
	"time"

	"vaultd/internal/archive"
)

// clock is the time of the simulated machine and of the service. Both go with the
// bubble's time; a machine that sleeps lets it run on without the timers, and a wall
// clock that is set goes wrong for the machine alone.
type clock struct {
	mu          sync.Mutex
	boot        time.Time     // when the machine was booted, on true time; guarded by mu
	boots       int           // guarded by mu
	id          string        // of the boot; guarded by mu
	slept       time.Duration // true time that no timer saw; guarded by mu
	nap         time.Duration // what of slept passed at the instant of lay; guarded by mu
	lay         time.Time     // when it last went to sleep, as timers count; guarded by mu
	awake       time.Duration // what of slept was before the boot; guarded by mu
	error       time.Duration // of the machine's wall clock; guarded by mu
	least, most time.Duration // of error so far; guarded by mu
}

func newClock() *clock { return &clock{boot: time.Now().Add(-time.Hour), boots: 1, id: "boot-1"} }

// serviceTime is the time of everybody else.
func (c *clock) serviceTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trueTime()
}

// trueTime is what the time is. The caller holds mu.
func (c *clock) trueTime() time.Time { return time.Now().Add(c.slept) }

// machineTime is the time as the daemon reads it.
func (c *clock) machineTime() archive.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return archive.Instant{Wall: c.trueTime().Add(c.error), Boot: c.trueTime().Sub(c.boot), BootID: c.id, Slept: c.slept - c.awake}
}

func (c *clock) reboot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot, c.boots, c.awake = c.trueTime(), c.boots+1, c.slept
	c.id = fmt.Sprintf("boot-%d", c.boots)
}

// suspend suspends the machine for d: time passes for everybody, and no timer runs.
func (c *clock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
	if now := time.Now(); !now.Equal(c.lay) {
		c.lay, c.nap = now, 0
	}
	c.nap += d
}

// timeLastRead is the time of everybody else as whoever acts now may have read it last: between
// its look at the clock and its act the machine may have slept, and nobody can help that.
func (c *clock) timeLastRead() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Equal(c.lay) {
		return c.trueTime().Add(-c.nap)
	}
	return c.trueTime()
}

// setMachineClock makes the machine's wall clock wrong by d; zero puts it right.
func (c *clock) setMachineClock(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.error = d
	c.least, c.most = min(c.least, d), max(c.most, d)
}

// errorSpan returns by how much the machine's clock may have been wrong between two moments.
func (c *clock) errorSpan() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most - c.least
}
