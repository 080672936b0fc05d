package main_test

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// I6, I26: a clock that is off by an hour archives all the same, and somebody is told.
func TestStatus_I26_ClockOffByAnHour(t *testing.T) {
	t.Parallel()
	type row struct {
		ahead time.Duration
		want  string
		clock string
	}
	kit.Rows(t, map[string]row{
		"Behind": {time.Hour, "behind the archive service's", "min behind"},
		"Ahead":  {-time.Hour, "ahead of the archive service's", "ahead of"},
		"Right":  {0, "", ""},
	}, func(t *testing.T, row row) {
		t.Parallel()
		emu, s := served(t, emulator.Config{ArchiveMax: 100 * time.Millisecond, Clock: func() time.Time { return time.Now().Add(row.ahead) }}, fast)
		s.fill(3, 4)
		s.must(0, "run", "--once", "--wait")
		onceEach(t, emu, 3)
		out, code := s.vaultd("status")
		if told := strings.Contains(out, "the clock of this machine was"); told != (row.want != "") || !strings.Contains(out, row.want) || !strings.Contains(out, row.clock+" the service's\n") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}
