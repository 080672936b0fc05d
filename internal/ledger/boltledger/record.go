package boltledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/archive"
)

// The codecs: the first byte of a record.
const (
	codecPlain    = 1 // the payload is a message in protobuf wire form
	codecDeflated = 2 // the payload is such a message, deflated
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// form writes a T as a record and reads it. Each field of T, and of the structs
// within it, has the number under which it is stored in its tag:
//
//	Rev uint32 `stored:"2"`
//
// The tag is all there is to know of a field. Once a schema is released, a
// number is never given to another field, and a new field comes with a new
// schema number: an older program then refuses the ledger, and drops nothing
// that it does not know.
type form[T any] struct{ *message }

// formOf returns the form of T. It panics where a field of T has no number, or
// a type that cannot be stored.
func formOf[T any]() form[T] { return form[T]{messageOf(reflect.TypeFor[T]())} }

// encode returns v as a record: codec, payload, checksum over both.
func (f form[T]) encode(v *T) []byte {
	const usual = 1 << 10 // bytes that hardly any record outgrows
	return appendChecksum(f.appendFields(append(make([]byte, 0, usual), codecPlain), reflect.ValueOf(v).Elem()))
}

// encodeDeflated is encode for a record that is worth deflating. A record that
// becomes no shorter is left as it is.
func (f form[T]) encodeDeflated(v *T) []byte {
	plain := f.encode(v)
	b := append(make([]byte, 0, len(plain)), codecDeflated)
	b, err := appendDeflated(b, plain[1:len(plain)-4])
	if err != nil || len(b)+4 >= len(plain) {
		return plain
	}
	return appendChecksum(b)
}

func appendChecksum(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode reads a record. Nothing of what it returns points into the record.
func (f form[T]) decode(record []byte) (v T, err error) {
	n := len(record) - 4
	if n < 1 {
		return v, fmt.Errorf("read %s: shorter than its frame", f.name)
	}
	// Before anything is believed: the codec byte and every length are covered too.
	if have, want := crc32.Checksum(record[:n], castagnoli), binary.BigEndian.Uint32(record[n:]); have != want {
		return v, fmt.Errorf("read %s: checksum is %08x, the record says %08x", f.name, have, want)
	}
	payload := record[1:n]
	switch record[0] {
	case codecPlain:
	case codecDeflated:
		if payload, err = inflate(payload); err != nil {
			return v, fmt.Errorf("read %s: inflate: %w", f.name, err)
		}
	default:
		return v, fmt.Errorf("read %s: unknown codec %d", f.name, record[0])
	}
	return v, f.parseFields(reflect.ValueOf(&v).Elem(), payload)
}

// message is the stored form of a struct: its name, and a row for each field in
// ascending order of their numbers.
type message struct {
	name   string
	fields []field
}

// field is the stored form of one field of a struct.
type field struct {
	num   protowire.Number
	index int // in the struct
	name  string
	kind  kind
	list  int      // values in a list: the length of an array, -1 for a slice; 0: it is no list
	part  *message // of a struct within the struct
}

// kind is how a value is stored.
type kind uint8

const (
	kindNumber kind = iota // a varint
	kindSigned
	kindFlag
	kindTime    // nanoseconds since 1970 in UTC
	kindText    // bytes after their number, as all below
	kindRequest // see requestBytes
	kindBytes   // a slice
	kindArray   // an array
	kindMessage // a message
)

// appendFields appends the fields of a struct, but for those that are zero.
func (m *message) appendFields(b []byte, v reflect.Value) []byte {
	for i := range m.fields {
		f := &m.fields[i]
		v := v.Field(f.index)
		switch {
		case f.list != 0:
			for n := range v.Len() {
				b = f.appendValue(b, v.Index(n))
			}
		case !f.isZero(v):
			b = f.appendValue(b, v)
		}
	}
	return b
}

// isZero reports whether a value is not written. The year 1970 is.
func (f *field) isZero(v reflect.Value) bool {
	switch f.kind {
	case kindTime:
		return timeIn(v).IsZero()
	case kindBytes:
		return v.Len() == 0
	}
	return v.IsZero()
}

func timeIn(v reflect.Value) *time.Time { return v.Addr().Interface().(*time.Time) }

// appendValue appends a value after its number.
func (f *field) appendValue(b []byte, v reflect.Value) []byte {
	if f.kind <= kindTime {
		b = protowire.AppendTag(b, f.num, protowire.VarintType)
	} else {
		b = protowire.AppendTag(b, f.num, protowire.BytesType)
	}
	switch f.kind {
	case kindNumber:
		return protowire.AppendVarint(b, v.Uint())
	case kindSigned:
		return protowire.AppendVarint(b, uint64(v.Int()))
	case kindFlag:
		return protowire.AppendVarint(b, 1)
	case kindTime:
		return protowire.AppendVarint(b, uint64(nanosOf(*timeIn(v))))
	case kindText:
		return protowire.AppendString(b, v.String())
	case kindRequest:
		return protowire.AppendBytes(b, requestBytes(v.String()))
	case kindBytes, kindArray:
		return protowire.AppendBytes(b, v.Bytes())
	}
	return appendLength(f.part.appendFields(append(b, 0), v), len(b))
}

// appendLength puts the length of what follows b[at] into b[at], and makes room
// where the length needs more than that byte.
func appendLength(b []byte, at int) []byte {
	n := len(b) - at - 1
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 {
		b = slices.Grow(b, more)[:len(b)+more]
		copy(b[at+1+more:], b[at+1:at+1+n])
	}
	protowire.AppendVarint(b[:at], uint64(n))
	return b
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

// requestBytes returns the stored form of the id of a call. Most are UUIDs,
// which take 17 bytes: a zero, which marks them, and their own 16.
func requestBytes(s string) []byte {
	if id, err := archive.ParseID(s); err == nil && id.String() == s {
		return append([]byte{0}, id[:]...)
	}
	return []byte(s)
}

// parseFields reads the fields of a struct in ascending order, each once unless
// it is a list. A field that is not in the table is an error: a record that
// holds more than we know must never be written back without it.
func (m *message) parseFields(v reflect.Value, b []byte) error {
	next, item := 0, 0
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("read %s: %w", m.name, protowire.ParseError(n))
		}
		b = b[n:]
		for next < len(m.fields) && m.fields[next].num < num {
			next, item = next+1, 0
		}
		// Refused and not skipped: the record would lose the field when it is written next.
		if next == len(m.fields) || m.fields[next].num != num {
			return fmt.Errorf("read %s: field %d is unknown or out of order", m.name, num)
		}
		f := &m.fields[next]
		v := v.Field(f.index)
		if f.list != 0 {
			if v.Kind() == reflect.Slice {
				v.Grow(1)
				v.SetLen(item + 1)
			}
			v, item = v.Index(item), item+1
		}
		if item == f.list { // no further value
			next, item = next+1, 0
		}
		n, err := f.parseValue(v, typ, b)
		if err != nil {
			return fmt.Errorf("read %s.%s: %w", m.name, f.name, err)
		}
		b = b[n:]
	}
	return nil
}

// parseValue reads one value into v and returns its length in b.
func (f *field) parseValue(v reflect.Value, typ protowire.Type, b []byte) (n int, err error) {
	want, u, s := protowire.BytesType, uint64(0), []byte(nil)
	if f.kind <= kindTime {
		want = protowire.VarintType
		u, n = protowire.ConsumeVarint(b)
	} else {
		s, n = protowire.ConsumeBytes(b)
	}
	switch {
	case typ != want:
		return 0, fmt.Errorf("wire type %d, expected %d", typ, want)
	case n < 0:
		return 0, protowire.ParseError(n)
	}
	switch f.kind {
	case kindNumber:
		if v.OverflowUint(u) {
			return 0, fmt.Errorf("%d is too large", u)
		}
		v.SetUint(u)
	case kindSigned:
		v.SetInt(int64(u))
	case kindFlag:
		if u != 1 {
			return 0, fmt.Errorf("%d where only 1 is written", u)
		}
		v.SetBool(true)
	case kindTime:
		*timeIn(v) = time.Unix(0, int64(u)).UTC()
	case kindText:
		v.SetString(string(s))
	case kindRequest:
		if v.SetString(string(s)); len(s) == 17 && s[0] == 0 {
			v.SetString(archive.ID(s[1:]).String())
		}
	case kindBytes:
		v.SetBytes(append([]byte(nil), s...))
	case kindArray:
		if len(s) != v.Len() {
			return 0, fmt.Errorf("%d bytes, expected %d", len(s), v.Len())
		}
		copy(v.Bytes(), s)
	case kindMessage:
		err = f.part.parseFields(v, s)
	}
	return n, err
}

// messageOf returns the stored form of a struct.
func messageOf(t reflect.Type) *message {
	m := &message{name: t.Name()}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("stored")
		if tag == "-" {
			continue
		}
		num, err := strconv.ParseUint(tag, 10, 8)
		if err != nil || num == 0 || !f.IsExported() {
			panic(fmt.Sprintf("%s.%s is not exported, or has no number under which it is stored", t, f.Name))
		}
		row := field{num: protowire.Number(num), index: i, name: f.Name}
		row.setType(f.Type)
		m.fields = append(m.fields, row)
	}
	slices.SortFunc(m.fields, func(a, b field) int { return int(a.num - b.num) })
	return m
}

// setType decides how values of type t are stored.
func (f *field) setType(t reflect.Type) {
	kind := t.Kind()
	isList := kind == reflect.Slice || kind == reflect.Array
	isBytes := isList && t.Elem().Kind() == reflect.Uint8
	switch {
	case t == reflect.TypeFor[time.Time]():
		f.kind = kindTime
	case t == reflect.TypeFor[archive.RequestID]():
		f.kind = kindRequest
	case kind == reflect.Bool && f.list == 0:
		f.kind = kindFlag
	case kind >= reflect.Uint8 && kind <= reflect.Uint64:
		f.kind = kindNumber
	case kind == reflect.Int || kind == reflect.Int64:
		f.kind = kindSigned
	case kind == reflect.String:
		f.kind = kindText
	case isBytes && kind == reflect.Slice:
		f.kind = kindBytes
	case isBytes:
		f.kind = kindArray
	case isList && f.list == 0:
		if f.list = -1; kind == reflect.Array {
			f.list = t.Len()
		}
		f.setType(t.Elem())
	case kind == reflect.Struct:
		f.kind, f.part = kindMessage, messageOf(t)
	default:
		panic(fmt.Sprintf("%s: a %s cannot be stored", f.name, t))
	}
}
