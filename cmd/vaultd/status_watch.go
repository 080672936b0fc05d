package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vaultd/internal/present"
)

const (
	watchEvery = 5 * time.Second
	watchLeast = time.Second
)

// watchStatus shows the status again and again until ctx ends, which is no error. An error at the first time ends it. A
// later error is shown instead of the status: the daemon may just be restarting.
func (a *app) watchStatus(c *cobra.Command, every time.Duration, verbose bool) error {
	switch {
	case a.inside != nil:
		return usageError{errors.New("the daemon answers once; the command itself asks again")}
	case every < watchLeast:
		return usageError{fmt.Errorf("--watch=%v is too often; %v is the least", every, watchLeast)}
	}
	request := []string{"status"}
	if a.json {
		request = append(request, "--json")
	}
	draw := a.pageWriter()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for shown := false; ; shown = true {
		page, err := a.statusPage(c.Context(), request, verbose)
		switch {
		case c.Context().Err() != nil:
			return nil
		case err != nil && !shown:
			return err
		case err != nil:
			a.reportError(err)
		}
		if err := draw(page); err != nil {
			return fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// statusPage gives the status once. That something needs a person is no error here.
func (a *app) statusPage(ctx context.Context, request []string, verbose bool) ([]byte, error) {
	var page bytes.Buffer
	one := &app{stdout: &page, stderr: a.stderr, env: a.env, uid: a.uid, configPath: a.configPath, json: a.json}
	cfg, err := one.configForAsking()
	if err == nil {
		if verbose {
			request = append(request, "--verbose")
		}
		err = one.runThroughDaemon(ctx, cfg, append(request, "--"), &page, func(ctx context.Context, v view) error { return one.runStatus(ctx, v, verbose) })
	}
	if err != nil {
		if code, _ := exitCodeOf(err); code == exitPerson {
			err = nil
		}
	}
	return page.Bytes(), err
}

// pageWriter returns the function that shows one status: on a terminal in place of the one before, elsewhere below it. With
// --json each is one line.
func (a *app) pageWriter() func(page []byte) error {
	if f, ok := a.stdout.(*os.File); ok && !a.json && term.IsTerminal(int(f.Fd())) {
		return func(page []byte) error {
			_, height, err := term.GetSize(int(f.Fd()))
			if err != nil {
				height = 25
			}
			_, err = io.WriteString(f, redrawTerminal(string(page), height))
			return err
		}
	}
	first := true
	return func(page []byte) error {
		if !first && !a.json {
			page = append([]byte("\n"), page...)
		}
		first = false
		_, err := a.stdout.Write(page)
		return err
	}
}

// redrawTerminal writes a text over the one before without clearing the terminal first, so that it does not flicker. Lines
// that do not fit are left out, and the last line says so.
func redrawTerminal(page string, height int) string {
	lines := strings.Split(strings.TrimRight(page, "\n"), "\n")
	if height > 1 && len(lines) >= height {
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], "... "+present.FormatCount(more, "more line: make the window larger, or vaultd status", "more lines: make the window larger, or vaultd status"))
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
