package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

var errEnough = errors.New("enough")

// readChanged returns the keys of the entries that the lines after a head tell of, in order and each once, and the head after the
// last of these lines. It reads one batch of lines.
func (c *Catalog) readChanged(after ledger.Head) (keys []archive.Key, head ledger.Head, err error) {
	head = after
	changed := map[archive.Key]bool{}
	err = c.cfg.Ledger.Lines(after.N+1, func(_ uint64, line []byte) error {
		if head.N-after.N == batchLines {
			return errEnough
		}
		k, is, err := keyOf(line)
		if is {
			changed[k] = true
		}
		head = head.Next(line)
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, head, err
	}
	return slices.SortedFunc(maps.Keys(changed), compareKeys), head, nil
}

// keyField stands in each line that tells of an entry. What stands before it in a line is a number, a time and a word of ours.
const keyField = `,"key":"`

// keyOf returns the key of the entry that a line tells of; ok is false where it tells of none.
func keyOf(line []byte) (k archive.Key, ok bool, err error) {
	_, rest, ok := bytes.Cut(line, []byte(keyField))
	if !ok || ledger.IsArrivalLine(line) {
		return k, false, nil
	}
	text, _, ok := bytes.Cut(rest, []byte{'"'})
	if k, err = archive.ParseKey(string(text)); err != nil || !ok {
		return k, false, fmt.Errorf("read a journal line: %w", err)
	}
	return k, true, nil
}
