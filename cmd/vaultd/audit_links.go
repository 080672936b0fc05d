package main

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"vaultd/internal/sanitize"
)

// receiptLinks returns the function that gives the link to a receipt, for a report in the folder beside; nil when that
// folder is not known.
//
// A link is relative, and exists only when the report is in the drop folder or above it: then whoever opens the report, on
// this machine or over the share, can open the receipt. For a report elsewhere the reader's path is not known.
func (v view) receiptLinks(beside string) func(drop, receipt string) string {
	if beside == "" {
		return nil
	}
	ways := map[string]string{} // from the report to each drop folder that one leads to
	for _, d := range v.cfg.Drops {
		if way, err := filepath.Rel(beside, d.Path); err == nil && (strings.Trim(way, "./") == "" || !strings.HasPrefix(way, "..")) {
			ways[d.Name] = way
		}
	}
	return func(drop, receipt string) string {
		way, leads := ways[drop]
		if !leads || !sameOnWindows(receipt) {
			return ""
		}
		parts := strings.Split(path.Join(way, receipt), "/")
		for i, part := range parts {
			parts[i] = url.PathEscape(part)
		}
		if parts[0] == ".." {
			return strings.Join(parts, "/")
		}
		return "./" + strings.Join(parts, "/")
	}
}

// sameOnWindows reports whether a path has the same name on a share: Samba shows other names for what Windows does not allow.
func sameOnWindows(p string) bool {
	if !utf8.ValidString(p) || strings.ContainsAny(p, `\:*?"<>|`) {
		return false
	}
	for _, part := range strings.Split(p, "/") {
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || sanitize.Text(part) != part {
			return false
		}
	}
	return true
}
