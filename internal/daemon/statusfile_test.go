package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// That the service refuses the credentials is certain after its first answer: clerks read of it at once.
func TestStatusFile_I24_RefusedCredentialsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		h.lost.Store(true)
		h.drop("Otto 19", "19", "one", false)
		for range 600 {
			if time.Sleep(time.Second); len(h.d.State().Pauses) > 0 {
				break
			}
		}
		pauses := h.d.State().Pauses
		kit.Need(t, len(pauses) == 1 && pauses[0].NeedsPerson(),
			"pauses = %+v, want one that needs an operator", pauses)
		time.Sleep(4 * time.Second) // a status file is written at most every three seconds
		synctest.Wait()
		kit.Holds(t, "status file", h.status(), "DELAYED since")
		age := time.Since(pauses[0].Since)
		kit.Check(t, age < 30*time.Second, "the status file was read %v after the first answer, want less than 30 s", age)
	})
}

// _STATUS.txt is new at least every five minutes, and shows a pause that lasts.
func TestStatusFile_TimeAndDelay(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		path := filepath.Join(h.path, "_STATUS.txt")
		for range 100 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			_, stamp, _ := strings.Cut(strings.SplitN(h.status(), "\n", 2)[0], "acme-in")
			written, err := time.Parse("Mon 2 Jan 2006 15:04 MST", strings.TrimSpace(stamp))
			age := time.Since(written)
			kit.Need(t, err == nil && age <= 6*time.Minute, "the status file is %v old (error %v), want at most 6 minutes", age, err)
		}
		h.lost.Store(true)
		h.drop("Otto 19", "19", "one", false)
		h.pass()
		kit.Holds(t, "status file", h.status(), "DELAYED since 01:0", "TAKEN, NOT YET ARCHIVED (1, newest first)\n  Otto 19               taken 01:0")
		h.lost.Store(false)
		h.pass()
		kit.Holds(t, "status file", h.status(), "ARCHIVED TODAY (1)")
		kit.Lacks(t, "status file", h.status(), "DELAYED")
		h.must(os.Remove(path))
		h.pass()
		_, err := os.Lstat(path)
		kit.Check(t, !errors.Is(err, os.ErrNotExist), "a removed status file did not come back, want it written again")
	})
}

// A folder that becomes late is in _STATUS.txt at once, although only the time
// has changed.
func TestStatusFile_ReminderIsOnTime(t *testing.T) {
	t.Parallel()
	withDaemon(t, func(s *dropwork.Settings) { s.RemindAfter = 17 * time.Minute }, func(h *testDaemon) {
		h.must(os.Mkdir(filepath.Join(h.path, "Huber 88"), 0o770))
		for _, row := range []struct {
			after time.Duration
			want  string
		}{
			{2 * time.Minute, "NOT TAKEN YET (1)"},
			{14 * time.Minute, "NOT TAKEN YET (1)"},
			{2*time.Minute + 10*time.Second, "PLEASE FIX (1)"},
		} {
			time.Sleep(row.after)
			synctest.Wait()
			kit.Holds(t, "status file after "+row.after.String(), h.status(), row.want)
		}
	})
}

// The mark of an idle drop folder is read by the probe every half minute, and
// at each write of _STATUS.txt, every five minutes.
func TestStatusFile_AndMarkOfAnIdleDrop(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.pass()
		var marks, writes atomic.Int32
		count := durable.Hook(func(op, name string, do func() error) error {
			switch {
			case op == "statfs": // asked whenever the mark is read
				marks.Add(1)
			case op == "rename" && name == "_STATUS.txt":
				writes.Add(1)
			}
			return do()
		})
		h.files.Store(&count)
		time.Sleep(time.Hour)
		synctest.Wait()
		h.files.Store(nil)
		kit.Want(t, "writes of the status file in an hour", writes.Load(), 12)
		kit.Want(t, "readings of the mark in an hour", marks.Load(), 120+12)
	})
}
