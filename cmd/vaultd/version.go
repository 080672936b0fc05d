package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"vaultd/internal/sanitize"
)

// build is what this program is made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty: unknown
	Time     string `json:"time"`   // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

// What "make build" writes into the program, for one that is built without version control.
var madeVersion, madeCommit string

// readBuild asks the program itself, and where that was built without version control, what was written into it.
func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{Version: cmp.Or(madeVersion, "unknown"), Commit: madeCommit}
	}
	b := build{Version: info.Main.Version, Go: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = cmp.Or(madeVersion, "devel")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	b.Commit = cmp.Or(b.Commit, madeCommit)
	return b
}

func buildVersion() string { return readBuild().Version }

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "version, commit and compiler of this program",
		Long: `Prints what this program is made of: its version, the commit that it was built from,
whether that was changed since, and the compiler. It is also in every report.`,
		Example: `  vaultd version
  vaultd version --json`,
		Args: expectArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if a.json {
				return writeJSON(a.stdout, b)
			}
			fmt.Fprintln(a.stdout, b)
			return nil
		},
	}
}

// String returns the build as people read it.
func (b build) String() string {
	s := "vaultd " + b.Version
	if b.Commit != "" {
		s += ", commit " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Modified {
		s += " with changes"
	}
	return s + ", " + b.Go
}

// writeJSON writes v as one object on one line, which steers no terminal.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil {
		_, err = w.Write(sanitize.JSON(b.Bytes()))
	}
	if err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}
