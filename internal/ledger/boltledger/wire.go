package boltledger

import (
	"vaultd/internal/archive"

	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The codecs: the first byte of a record.
const (
	codecPlain    = 1 // the payload is a message in protobuf wire form
	codecDeflated = 2 // the payload is such a message, deflated
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errShort = errors.New("shorter than its frame")

// message is the wire form of a T: its name in docs/ledger.proto and one row per
// field, in ascending order of their numbers. The row is all there is to know of a
// field, so that writing, reading and the description cannot drift apart.
type message[T any] struct {
	name   string
	fields []field[T]
}

// field is one row. put appends tag and value, or nothing for the zero value; get
// reads one value and returns its length in b.
type field[T any] struct {
	num  protowire.Number
	name string
	kind string // the type in docs/ledger.proto
	put  func(b []byte, v *T) []byte
	get  func(v *T, typ protowire.Type, b []byte) (int, error)
}

// usualRecord is the room that hardly any record outgrows while it is written.
const usualRecord = 1 << 10

// encode returns v as a record: codec, payload, checksum over both.
func (m *message[T]) encode(v *T) []byte { return m.encodeSized(usualRecord, v) }

// encodeDeflated is encode for a record that is worth deflating. One that becomes no shorter is left as it is.
func (m *message[T]) encodeDeflated(room int, v *T) []byte {
	plain := m.encodeSized(room, v)
	b := append(make([]byte, 0, len(plain)), codecDeflated)
	b, err := appendDeflated(b, plain[1:len(plain)-4])
	if err != nil || len(b)+4 >= len(plain) {
		return plain
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// encodeSized is encode for a record whose size is known.
func (m *message[T]) encodeSized(room int, v *T) []byte {
	b := m.appendFields(append(make([]byte, 0, room), codecPlain), v)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode reads a record. Nothing of what it returns points into the record.
func (m *message[T]) decode(record []byte) (T, error) {
	var v T
	payload, err := m.checkRecord(record)
	if err != nil {
		return v, err
	}
	switch record[0] {
	case codecPlain:
	case codecDeflated:
		if payload, err = inflate(payload); err != nil {
			return v, fmt.Errorf("read %s: inflate: %w", m.name, err)
		}
	default:
		return v, fmt.Errorf("read %s: unknown codec %d", m.name, record[0])
	}
	return v, m.parseFields(&v, payload)
}

// checkRecord checks a record's checksum and returns what is between codec and checksum.
func (m *message[T]) checkRecord(record []byte) (payload []byte, err error) {
	n := len(record) - 4
	if n < 1 {
		return nil, fmt.Errorf("read %s: %w", m.name, errShort)
	}
	// Before anything is believed: the codec byte and every length are covered too.
	if have, want := crc32.Checksum(record[:n], castagnoli), binary.BigEndian.Uint32(record[n:]); have != want {
		return nil, fmt.Errorf("read %s: checksum is %08x, the record says %08x", m.name, have, want)
	}
	return record[1:n], nil
}

func (m *message[T]) appendFields(b []byte, v *T) []byte {
	for i := range m.fields {
		b = m.fields[i].put(b, v)
	}
	return b
}

// parseFields reads fields in ascending order. A field that is not in the table is an
// error: a record that holds more than we know must never be written back without it.
func (m *message[T]) parseFields(v *T, b []byte) error {
	next := 0
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("read %s: %w", m.name, protowire.ParseError(n))
		}
		b = b[n:]
		for next < len(m.fields) && m.fields[next].num < num {
			next++
		}
		// Refused and not skipped: the record would lose the field when it is written next.
		if next == len(m.fields) || m.fields[next].num != num {
			return fmt.Errorf("read %s: field %d is unknown or out of order", m.name, num)
		}
		n, err := m.fields[next].get(v, typ, b)
		if err != nil {
			return fmt.Errorf("read %s.%s: %w", m.name, m.fields[next].name, err)
		}
		b = b[n:]
	}
	return nil
}

func consumeVarint(typ protowire.Type, b []byte) (uint64, int, error) {
	if typ != protowire.VarintType {
		return 0, 0, fmt.Errorf("wire type %d where a number belongs", typ)
	}
	u, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, protowire.ParseError(n)
	}
	return u, n, nil
}

func consumeBytes(typ protowire.Type, b []byte) ([]byte, int, error) {
	if typ != protowire.BytesType {
		return nil, 0, fmt.Errorf("wire type %d where bytes belong", typ)
	}
	s, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, 0, protowire.ParseError(n)
	}
	return s, n, nil
}

func appendVarint(b []byte, num protowire.Number, u uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), u)
}

func appendBytes(b []byte, num protowire.Number, s []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), s)
}

// appendMessage appends a message within a message, its length before it.
func appendMessage[M any](b []byte, num protowire.Number, m *message[M], v *M) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	at := len(b)
	b = m.appendFields(append(b, 0), v)
	n := len(b) - at - 1
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 { // the length needs more room than the one byte
		b = slices.Grow(b, more)[:len(b)+more]
		copy(b[at+1+more:], b[at+1:at+1+n])
	}
	protowire.AppendVarint(b[:at], uint64(n))
	return b
}

// numberField is a row for an unsigned number of any width.
func numberField[T any, V ~uint8 | ~uint16 | ~uint32 | ~uint64](num protowire.Number, name string, at func(*T) *V) field[T] {
	kind, limit := "uint32", uint64(^V(0))
	if limit > math.MaxUint32 {
		kind = "uint64"
	}
	return field[T]{num, name, kind,
		func(b []byte, v *T) []byte {
			if u := *at(v); u != 0 {
				b = appendVarint(b, num, uint64(u))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			u, n, err := consumeVarint(typ, b)
			if err == nil && u > limit {
				err = fmt.Errorf("%d is more than %d", u, limit)
			}
			*at(v) = V(u)
			return n, err
		}}
}

// signedField is a row for a number that may be negative.
func signedField[T any, V ~int | ~int64](num protowire.Number, name string, at func(*T) *V) field[T] {
	return field[T]{num, name, "int64",
		func(b []byte, v *T) []byte {
			if i := *at(v); i != 0 {
				b = appendVarint(b, num, uint64(i))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			u, n, err := consumeVarint(typ, b)
			*at(v) = V(u)
			return n, err
		}}
}

func flagField[T any](num protowire.Number, name string, at func(*T) *bool) field[T] {
	return field[T]{num, name, "bool",
		func(b []byte, v *T) []byte {
			if *at(v) {
				b = appendVarint(b, num, 1)
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			u, n, err := consumeVarint(typ, b)
			if err == nil && u != 1 {
				err = fmt.Errorf("%d where only 1 is written", u)
			}
			*at(v) = u == 1
			return n, err
		}}
}

// instantField is a row for a time: nanoseconds since 1970 in UTC. The zero time is not
// written; the year 1970 is.
func instantField[T any](num protowire.Number, name string, at func(*T) *time.Time) field[T] {
	return field[T]{num, name, "optional int64",
		func(b []byte, v *T) []byte {
			if t := *at(v); !t.IsZero() {
				b = appendVarint(b, num, uint64(nanosOf(t)))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			u, n, err := consumeVarint(typ, b)
			*at(v) = time.Unix(0, int64(u)).UTC()
			return n, err
		}}
}

// nanosOf returns t in nanoseconds since 1970, or the nearest time that fits: each time that
// the service sends can be stored.
func nanosOf(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func textField[T any, V ~string](num protowire.Number, name string, at func(*T) *V) field[T] {
	return field[T]{num, name, "string",
		func(b []byte, v *T) []byte {
			if s := *at(v); s != "" {
				b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), string(s))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			*at(v) = V(s)
			return n, err
		}}
}

// requestField is a row for the id of a call. Most are UUIDs, which take 17
// bytes: a zero, which marks them, and their own 16.
func requestField[T any](num protowire.Number, name string, at func(*T) *archive.RequestID) field[T] {
	return field[T]{num, name, "bytes",
		func(b []byte, v *T) []byte {
			s := string(*at(v))
			if id, err := archive.ParseID(s); err == nil && id.String() == s {
				return appendBytes(b, num, append([]byte{0}, id[:]...))
			}
			if s != "" {
				b = appendBytes(b, num, []byte(s))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			*at(v) = archive.RequestID(s)
			if len(s) == 17 && s[0] == 0 {
				*at(v) = archive.RequestID(archive.ID(s[1:]).String())
			}
			return n, err
		}}
}

func rawField[T any](num protowire.Number, name string, at func(*T) *[]byte) field[T] {
	return field[T]{num, name, "bytes",
		func(b []byte, v *T) []byte {
			if s := *at(v); len(s) > 0 {
				b = appendBytes(b, num, s)
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			*at(v) = slices.Clone(s)
			return n, err
		}}
}

// fixedField is a row for an array of bytes, given as a slice over it; an array of zeros is not written.
func fixedField[T any](num protowire.Number, name string, at func(*T) []byte) field[T] {
	return field[T]{num, name, "bytes",
		func(b []byte, v *T) []byte {
			s := at(v)
			if slices.IndexFunc(s, func(c byte) bool { return c != 0 }) >= 0 {
				b = appendBytes(b, num, s)
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			if want := len(at(v)); err == nil && len(s) != want {
				err = fmt.Errorf("%d bytes where %d belong", len(s), want)
			}
			copy(at(v), s)
			return n, err
		}}
}

// partField is a row for a message within a message; one that is all zero is not written.
func partField[T, M any](num protowire.Number, name string, m *message[M], at func(*T) *M) field[T] {
	return field[T]{num, name, m.name,
		func(b []byte, v *T) []byte {
			if more := appendMessage(b, num, m, at(v)); len(more) > len(b)+protowire.SizeTag(num)+1 {
				return more
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			if err == nil {
				err = m.parseFields(at(v), s)
			}
			return n, err
		}}
}

// listField is a row for any number of messages.
func listField[T, M any](num protowire.Number, name string, m *message[M], at func(*T) *[]M) field[T] {
	return field[T]{num, name, "repeated " + m.name,
		func(b []byte, v *T) []byte {
			all := *at(v)
			for i := range all {
				b = appendMessage(b, num, m, &all[i])
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			if err != nil {
				return n, err
			}
			var one M
			err = m.parseFields(&one, s)
			*at(v) = append(*at(v), one)
			return n, err
		}}
}

// steppedOver is a row whose value is not kept.
func steppedOver[T any](f field[T]) field[T] {
	f.get = func(_ *T, typ protowire.Type, b []byte) (int, error) {
		_, n, err := consumeBytes(typ, b)
		return n, err
	}
	return f
}

// itemsField is a row for any number of strings or byte strings.
func itemsField[T any, V ~string | ~[]byte](num protowire.Number, name, kind string, at func(*T) *[]V) field[T] {
	return field[T]{num, name, "repeated " + kind,
		func(b []byte, v *T) []byte {
			for _, s := range *at(v) {
				b = appendBytes(b, num, []byte(s))
			}
			return b
		},
		func(v *T, typ protowire.Type, b []byte) (int, error) {
			s, n, err := consumeBytes(typ, b)
			*at(v) = append(*at(v), V(slices.Clone(s)))
			return n, err
		}}
}
