package main_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	program "vaultd/cmd/vaultd"
)

// bounded looks at what the daemon holds.
func (y *yard) bounded() {
	y.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", y.daemon.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	y.must(err)
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if kb, err := strconv.Atoi(string(peak[1])); err != nil || kb > 300_000 {
		y.t.Errorf("at its peak %d kB of memory, %v", kb, err)
	} else {
		y.t.Logf("at its peak %d MB of memory", kb/1000)
	}
	if open, err := os.ReadDir(proc + "fd"); err != nil || len(open) > 120 {
		y.t.Errorf("%d descriptors open, %v", len(open), err)
	}
	if used := y.census(filepath.Join(y.dir, "state", "spool")); strings.Count(used, "\n") > 20 {
		y.t.Errorf("left in the spool: %s", used)
	}
}

// outputs looks at everything that people and programs read.
func (y *yard) outputs() {
	y.t.Helper()
	for _, args := range [][]string{{"status"}, {"list", "--limit", "0"}, {"list", "--json"}, {"audit", "--format", "html"}, {"audit", "--format", "json"},
		{"audit", "--format", "csv"}, {"audit", "--format", "csv", "--separator", ";"}, {"find", "Gut"}} {
		var stdout, stderr bytes.Buffer
		code := program.Run(y.t.Context(), y.line(args), strings.NewReader(""), &stdout, &stderr, os.LookupEnv)
		out := stdout.String()
		if want := map[string]int{"status": exitPerson, "audit": exitDifferences}[args[0]]; code != want {
			y.t.Errorf("%v: exit %d: %s: %s", args, code, stderr.String(), tail(out, 500))
		}
		y.harmless(strings.Join(args, " "), out, slices.Contains(args, "html"))
		if slices.Contains(args, "csv") {
			y.sheet(out, args[len(args)-1] == ";")
		}
	}
	for _, page := range []string{"/", "/metrics"} {
		resp, err := http.Get(y.base + page)
		y.must(err)
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		y.must(err)
		resp.Body.Close()
		y.harmless(page, body.String(), true)
	}
	out, _ := y.vaultd("list", "--json")
	n := 0
	for line := range strings.Lines(out) {
		var e struct{ Key, Folder string }
		y.must(json.Unmarshal([]byte(line), &e))
		if n++; n%30 != 0 && steers(e.Folder) == "" {
			continue // a few of them are enough
		}
		for _, command := range []string{"show", "why"} {
			out, _ := y.vaultd(command, e.Key)
			y.harmless(command+" "+e.Key, out, false)
		}
	}
}

func (y *yard) harmless(what, out string, html bool) {
	y.t.Helper()
	if bad := steers(out); bad != "" {
		y.t.Errorf("%s holds %s", what, bad)
	}
	for _, tag := range []string{"<script>alert", "<img src=x"} {
		if html && strings.Contains(out, tag) {
			y.t.Errorf("%s holds %q", what, tag)
		}
	}
	if strings.Contains(out, secretOutside) || strings.Contains(out, "panic") {
		y.t.Errorf(`%s: %s, want out without %q, out without "panic"`, what, tail(out, 500), secretOutside)
	}
}

// sheet looks for cells that a spreadsheet would take for a formula.
func (y *yard) sheet(out string, semicolon bool) {
	y.t.Helper()
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff")))
	if semicolon {
		r.Comma = ';'
	}
	all, err := r.ReadAll()
	if err != nil {
		y.t.Errorf("csv: %v", err)
		return
	}
	number := regexp.MustCompile(`^-?[0-9.]+$`)
	for _, row := range all {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !number.MatchString(cell) {
				y.t.Errorf("csv: a cell %q", cell)
			}
		}
	}
}

// census is all that lies below a path, with its content.
func (y *yard) census(top string) string {
	y.t.Helper()
	var b strings.Builder
	y.must(filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() && info.Size() < 1000 {
			content, err = os.ReadFile(p)
		}
		fmt.Fprintf(&b, "%s %s %s %q\n", strings.TrimPrefix(p, top), info.Mode(), info.ModTime(), content)
		return err
	}))
	return b.String()
}
