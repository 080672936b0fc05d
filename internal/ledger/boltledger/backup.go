package boltledger

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// Backup writes the ledger at one moment to w and returns the number of bytes.
// It reads copied, a [Ledger.Copy], which it closes; nil: the ledger itself,
// which must stay as it is meanwhile. The caller has checked what is read: a
// backup of a damaged ledger would be trusted when it is needed.
//
// The free pages of the backup are zeros: nothing that was wiped from an entry
// is in it. A slow reader of w holds the copy, and not the ledger.
func (l *Ledger) Backup(ctx context.Context, w io.Writer, copied *os.File) (n int64, err error) {
	if copied == nil {
		n, err = l.writeWithoutFree(ctx, w)
	} else {
		err = ReadOpenFile(copied, l.loc, func(c *Ledger) (err error) { n, err = c.writeWithoutFree(ctx, w); return err })
		err = errors.Join(err, copied.Close())
	}
	if err != nil {
		return n, fmt.Errorf("back up ledger: %w", err)
	}
	return n, nil
}

// writeWithoutFree writes the file page by page, and zeros for each that is free.
func (l *Ledger) writeWithoutFree(ctx context.Context, to io.Writer) (n int64, err error) {
	w := bufio.NewWriterSize(to, 32<<10)
	err = l.view(func(tx *bbolt.Tx) error {
		size := int64(l.db.Info().PageSize)
		meta, err := metaPagesOf(tx, int(size))
		if err != nil {
			return err
		}
		_, err = w.Write(meta)
		free := make([]byte, size)
		for n = int64(len(meta)); err == nil; {
			page, unread := tx.Page(int(n / size))
			if unread != nil || page == nil { // behind the last one
				return unread
			}
			from, length := io.Reader(bytes.NewReader(free)), size
			if page.Type != "free" {
				length += size * int64(page.OverflowCount)
				from = io.NewSectionReader(l.file, n, length)
			}
			_, err = io.CopyN(w, from, length)
			n, err = n+length, cmp.Or(err, context.Cause(ctx))
		}
		return err
	})
	return n, errors.Join(err, w.Flush())
}
