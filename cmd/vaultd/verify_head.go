package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

const (
	maxHeadFile  = 64 << 20 // bytes of a file with heads
	mostKeptHead = 500      // different heads of one file: more do not fit into one request to the daemon
)

// keptHead is a head that somebody kept, and whether the journal still contains
// it.
type keptHead struct {
	Line      uint64 `json:"line"`
	Hash      string `json:"hash"`
	Contained bool   `json:"contained"`
}

// headForms are the forms in which vaultd writes heads: as text, in a receipt,
// and in the JSON of audit, verify and backup.
var headForms = []*regexp.Regexp{
	regexp.MustCompile(`\b(\d{1,19}):([0-9a-f]{64})\b`),
	regexp.MustCompile(`"line":\s*(\d{1,19}),\s*"hash":\s*"([0-9a-f]{64})"`),
	regexp.MustCompile(`"headLine":\s*(\d{1,19}),\s*"headHash":\s*"([0-9a-f]{64})"`),
}

// readKeptHeads reads the heads of a text or of the file with that name; none
// for an empty text.
func (a *app) readKeptHeads(text string) ([]ledger.Head, error) {
	if text == "" {
		return nil, nil
	}
	if heads, rest := findHeads(text); rest == "" {
		return heads, nil
	}
	if a.inside != nil {
		return nil, usageError{errors.New("the daemon reads no files for others")}
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, fail(exitData, fmt.Errorf("read a kept head: %w", err), "write --head LINE:HASH, or the name of a receipt, report or log")
	}
	defer f.Close() // read-only
	b, err := io.ReadAll(io.LimitReader(f, maxHeadFile+1))
	if err != nil {
		return nil, fmt.Errorf("read a kept head: %w", err)
	}
	if len(b) > maxHeadFile {
		return nil, fail(exitData, fmt.Errorf("%s has more than %d MB, and its end would not be read", sanitize.Text(text), maxHeadFile>>20), "name a part of it")
	}
	heads, _ := findHeads(string(b))
	if len(heads) == 0 || len(heads) > mostKeptHead {
		return nil, fail(exitData, fmt.Errorf("%s has %d heads of a journal", sanitize.Text(text), len(heads)),
			fmt.Sprintf("a head is LINE:HASH with 64 characters; name a receipt, a report or a log that has one, and at most %d", mostKeptHead))
	}
	return heads, nil
}

// findHeads returns the heads in a text, each once, and what is left of the text
// without those of the first form.
func findHeads(text string) (heads []ledger.Head, rest string) {
	for _, form := range headForms {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseUint(m[1], 10, 63)
			hash, hashErr := archive.ParseDigest(m[2])
			if h := (ledger.Head{N: n, Hash: hash}); err == nil && hashErr == nil && !slices.Contains(heads, h) {
				heads = append(heads, h)
			}
		}
	}
	return heads, strings.Trim(headForms[0].ReplaceAllString(text, ""), " ,\n")
}

func joinHeads(heads []ledger.Head) string {
	var texts []string
	for _, h := range heads {
		texts = append(texts, h.String())
	}
	return strings.Join(texts, ",")
}

// compareHeads compares heads that were kept with the journal, whose chain was
// read as a whole.
func (d *verdict) compareHeads(l interface {
	HeadAt(n uint64) (ledger.Head, bool, error)
}, kept []ledger.Head) error {
	for _, k := range kept {
		now, ok, err := l.HeadAt(k.N)
		if err != nil {
			return err
		}
		one := keptHead{k.N, k.Hash.String(), ok && now == k}
		d.Kept = append(d.Kept, one)
		if one.Contained {
			continue
		}
		d.OK = false
		what := fmt.Sprintf("line %d has not the hash %s that was kept: the journal was written anew before that line, or it is another ledger", k.N, k.Hash)
		if !ok {
			what = fmt.Sprintf("line %d, whose hash %s was kept, is missing: lines were removed, or an older copy was put back", k.N, k.Hash)
		}
		d.Problems = append(d.Problems, verdictProblem{"journal", what})
	}
	return nil
}
