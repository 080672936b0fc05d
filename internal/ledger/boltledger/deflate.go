package boltledger

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"google.golang.org/protobuf/encoding/protowire"
)

// Blocks of the journal are deflated (RFC 1951): their lines say nearly the same again and again, and are more than half of a
// ledger. The chain is computed over the lines themselves.

// mostInflated bounds what one record may hold. The largest block has the lines of one commit.
const mostInflated = 64 << 20

// inflaters and deflaters hold what is made once and used for one record after the other. They hold nothing of any record.
var (
	inflaters sync.Pool
	deflaters sync.Pool
)

// appendDeflated appends the deflated payload to b.
func appendDeflated(b, payload []byte) ([]byte, error) {
	out := bytes.NewBuffer(b)
	w, ok := deflaters.Get().(*flate.Writer)
	if ok {
		w.Reset(out)
	} else {
		var err error
		if w, err = flate.NewWriter(out, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer deflaters.Put(w)
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// openInflater returns a reader of what was deflated; it is put back into inflaters after its use.
func openInflater(in io.Reader) (io.ReadCloser, error) {
	r, ok := inflaters.Get().(io.ReadCloser)
	if !ok {
		return flate.NewReader(in), nil
	}
	// The readers of this package can all be reset.
	return r, r.(flate.Resetter).Reset(in, nil)
}

// firstLineOf returns the first line of a block's record. If the line is short
// it unpacks the beginning alone.
func firstLineOf(record []byte) ([]byte, error) {
	begin, err := blockForm.checkRecord(record)
	if err == nil && record[0] == codecDeflated {
		begin, err = inflateBegin(begin)
	}
	if err != nil {
		return nil, err
	}
	for len(begin) > 0 {
		num, typ, n := protowire.ConsumeTag(begin)
		if n < 0 {
			break
		}
		if begin = begin[n:]; num == 3 && typ == protowire.BytesType { // the lines
			if line, n := protowire.ConsumeBytes(begin); n >= 0 {
				return bytes.Clone(line), nil
			}
			break
		}
		if n = protowire.ConsumeFieldValue(num, typ, begin); n < 0 {
			break
		}
		begin = begin[n:]
	}
	// The line is longer than the beginning, or the record has none.
	b, err := blockForm.decode(record)
	if err == nil && len(b.Lines) == 0 {
		err = errShort
	}
	if err != nil {
		return nil, err
	}
	return b.Lines[0], nil
}

// beginBytes is how much of a block is unpacked to see its first line.
const beginBytes = 4 << 10

func inflateBegin(deflated []byte) ([]byte, error) {
	r, err := openInflater(bytes.NewReader(deflated))
	if err != nil {
		return nil, err
	}
	defer inflaters.Put(r)
	return io.ReadAll(io.LimitReader(r, beginBytes))
}

// inflate returns the payload that was deflated.
func inflate(deflated []byte) ([]byte, error) {
	in := bytes.NewReader(deflated)
	r, err := openInflater(in)
	if err != nil {
		return nil, err
	}
	defer inflaters.Put(r)
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
