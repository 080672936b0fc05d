package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Blocks of the journal are deflated (RFC 1951): their lines say nearly the same again and again, and are more than half of a
// ledger. The chain is computed over the lines themselves.

// mostInflated bounds what one record may hold. The largest block has the lines of one commit.
const mostInflated = 64 << 20

// inflaters and deflaters hold what is made once and used for one record after the other. They hold nothing of any record.
var (
	inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}
	deflaters = sync.Pool{New: func() any { w, _ := flate.NewWriter(nil, flate.BestSpeed); return w }} // it knows the level
)

// appendDeflated appends the deflated payload to b.
func appendDeflated(b, payload []byte) ([]byte, error) {
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	out := bytes.NewBuffer(b)
	w.Reset(out)
	_, err := w.Write(payload)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// inflate returns the payload that was deflated.
func inflate(deflated []byte) ([]byte, error) {
	in := bytes.NewReader(deflated)
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	// The readers of this package can all be reset.
	if err := r.(flate.Resetter).Reset(in, nil); err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, 4*len(deflated)+bytes.MinRead))
	// Damage was found by the checksum before. This is for a record that somebody made.
	switch n, err := out.ReadFrom(io.LimitReader(r, mostInflated+1)); {
	case err != nil:
		return nil, err
	case n > mostInflated:
		return nil, fmt.Errorf("more than %d bytes", mostInflated)
	}
	// Nothing may hide behind what is read.
	if in.Len() > 0 {
		return nil, fmt.Errorf("%d bytes behind its end", in.Len())
	}
	return out.Bytes(), nil
}
