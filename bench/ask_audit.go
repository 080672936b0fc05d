package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// auditRow measures the report of everything, with its complete table as CSV
// and XLSX, from a checked copy on, after 1 % more.
func (b *bench) auditRow(docs int) row {
	return row{ID: "audit-" + short(docs), Goal: "ask", Title: fmt.Sprintf("vaultd audit of %s documents: the page, and its table as CSV and XLSX", short(docs)),
		A: side{"vaultd audit", b.audit(docs, docs/100)}, Limit: wholeLimit,
		Counts: []count{
			{"documents a second", sample.rate, ">= 50000", atLeast(50_000)},
			{"page, MB", figureOfRow("page_mb"), "<= 3", atMost(3)},
			{"peak RssAnon, MiB", peakMiB, "<= 128", atMost(128)},
			{"all files, MB", figureOfRow("files_mb"), "told", nil},
		}}
}

func (b *bench) audit(docs, more int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		in, err := b.installVerified(ctx, dir, docs, more)
		if err != nil {
			return s, err
		}
		page := filepath.Join(dir, "report", "audit.html")
		if err := os.Mkdir(filepath.Dir(page), 0o770); err != nil {
			return s, err
		}
		const notComplete = 4 // no daemon looked into the drop folder
		s, err = in.measureCommand(ctx, "audit", "-o", page)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notComplete {
			err = nil
		}
		s.Docs = docs + more
		if err != nil {
			return s, err
		}
		info, err := os.Stat(page)
		if err != nil {
			return s, err
		}
		all, err := sizeOfFiles(filepath.Dir(page))
		s.noteFigure("page_mb", float64(info.Size())/1e6)
		s.noteFigure("files_mb", float64(all)/1e6)
		return s, err
	}
}

// sizeOfFiles returns the bytes of all files in a directory.
func sizeOfFiles(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
