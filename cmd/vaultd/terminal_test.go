package main_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
)

// terminal is the end of a pseudo terminal that a program writes to, with so
// many rows, and what was written.
func terminal(t *testing.T, rows uint16) (tty *os.File, shown func() string) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	kit.Must(t, err)
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(other.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 400})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	kit.Must(t, err)
	var text sharedText
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, other) // ends with an error when nobody has the terminal open
	}()
	t.Cleanup(func() {
		tty.Close()
		other.Close()
		<-done
	})
	return tty, text.String
}

// Times in the log are in the operator's zone with its offset for a person at a terminal, and in UTC for a program.
func TestLog_TimesHaveTheirZone(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	kit.Must(t, s.ledger.Close())
	tty, shown := terminal(t, 25)
	run := func(stderr io.Writer, said func() string, want string) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- program.Run(ctx, []string{"--config", s.config, "run"}, strings.NewReader(""), io.Discard, stderr, noEnv)
		}()
		kit.Await(t, "the first line", func() bool { return strings.Contains(said(), "vaultd started") })
		stop()
		if code := <-ended; code != exitDone {
			t.Errorf("exit %d: %s", code, said())
		}
		line, _, _ := strings.Cut(said(), "\n")
		kit.Check(t, regexp.MustCompile(want).MatchString(line), "%s, want %s", line, want)
	}
	run(tty, shown, `^time=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0[12]:00 `)
	var program sharedText
	run(&program, program.String, `^\{"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z","level"`)
}

// On a terminal a page takes the place of the one before, and never scrolls.
func TestStatusWatch_Redraw(t *testing.T) {
	s := filled(t)
	kit.Must(t, s.ledger.Close())
	for _, rows := range []uint16{60, 6} {
		tty, shown := terminal(t, rows)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- program.Run(ctx, []string{"--config", s.config, "status", "--watch=1s"}, strings.NewReader(""), tty, tty, noEnv)
		}()
		kit.Await(t, "two pages", func() bool { return strings.Count(shown(), "\x1b[J") >= 2 })
		stop()
		kit.Want(t, "exit", <-ended, exitDone)
		page, _, _ := strings.Cut(shown()[strings.Index(shown(), "\x1b[H"):], "\x1b[J")
		lines := strings.Split(page, "\x1b[K\r\r\n")
		isCut := strings.Contains(page, " more lines: make the window larger, or vaultd status")
		if len(lines) < 3 || len(lines) > int(rows) || isCut != (rows == 6) || !strings.HasPrefix(page, "\x1b[H") {
			t.Errorf("%d rows: %d lines: %q", rows, len(lines), page)
		}
	}
}
