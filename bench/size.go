package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"vaultd/internal/ledger/boltledger"
)

// size prints where the bytes of a ledger are, a document, by bucket and by field.
func size(_ context.Context, f *flags) (err error) {
	words, err := f.read("DIR")
	if err != nil {
		return err
	}
	l, err := boltledger.Open(boltledger.Config{Dir: words[0]})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	sizes, err := l.Sizes()
	if err != nil {
		return err
	}
	printSizes(f.stdout, sizes, max(l.Balance().Seen, 1))
	return nil
}

func printSizes(w io.Writer, sizes []boltledger.Size, docs uint64) {
	buckets, all := map[string]int64{}, int64(0)
	for _, s := range sizes {
		if !s.IsInflated {
			buckets[s.Bucket] += s.Bytes
			all += s.Bytes
		}
	}
	slices.SortStableFunc(sizes, func(a, b boltledger.Size) int {
		return cmp.Or(cmp.Compare(buckets[b.Bucket], buckets[a.Bucket]), cmp.Compare(a.Bucket, b.Bucket))
	})
	each := func(n int64) float64 { return float64(n) / float64(docs) }
	fmt.Fprintf(w, "%d documents, %.1f bytes of each in the file\n", docs, each(all))
	last := "none"
	for _, s := range sizes {
		if s.Bucket != last {
			last = s.Bucket
			fmt.Fprintf(w, "%-36s %8.1f\n", cmp.Or(s.Bucket, "file"), each(buckets[s.Bucket]))
		}
		if each(s.Bytes) >= 0.05 {
			note := ""
			if s.IsInflated {
				note = "  in the blocks, before they are deflated"
			}
			fmt.Fprintf(w, "  %-34s %8.1f%s\n", s.Part, each(s.Bytes), note)
		}
	}
}
