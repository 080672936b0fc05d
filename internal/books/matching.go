package books

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The kinds of parts in which matches are kept.
const (
	docPart = iota
	edgePart
	unbookedPart
)

// The bytes of one document, edge and document that is not booked.
const (
	docBytes      = len(archive.Key{}) + 2
	edgeBytes     = 4 + 4 + 2
	unbookedBytes = 4 + len(dayBytes{})
)

// keptTogether is how many of them are in one part.
const keptTogether = 50_000

// matchedOf names what matches are made of, beside the booked rows. The head's hash stands for all that the ledger has.
func matchedOf(head ledger.Head, since Day, credit []string) archive.Digest {
	return archive.Sum(fmt.Appendf(nil, "%d %s %s %q", head.N, head.Hash, since, credit))
}

// countChanges returns how often the booked rows have changed.
func (b *Books) countChanges(ctx context.Context, q querier) (n int64, err error) {
	return n, q.QueryRowContext(ctx, "SELECT changes FROM made").Scan(&n)
}

// keepMatches puts the matches into the file, so that the next answer finds
// them. If that fails, or another one writes, the next answer makes them again:
// nothing else depends on it.
func (b *Books) keepMatches(ctx context.Context, m *matches, of archive.Digest, changes int64) {
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	// It waits for nobody, because the answer is there, and needs no memory for pages beside those of the answer.
	_, err = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	if err == nil {
		_, err = conn.ExecContext(ctx, "PRAGMA cache_size = -2000")
	}
	if err == nil {
		_ = writeMatches(ctx, conn, m, of, changes)
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // another user of it would not wait either
}

// writeMatches writes the matches in one transaction. After a crash the file has those before, or these.
func writeMatches(ctx context.Context, conn *sql.Conn, m *matches, of archive.Digest, changes int64) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //lint:ignore errcheck it does nothing after the commit
	for _, statement := range []string{"DELETE FROM matching", "DELETE FROM matching_part"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	sum := sha256.New()
	if err := writeParts(ctx, tx, sum, docPart, m.docs, appendDocument); err != nil {
		return err
	}
	if err := writeParts(ctx, tx, sum, edgePart, m.edges, appendEdge); err != nil {
		return err
	}
	if err := writeParts(ctx, tx, sum, unbookedPart, m.unbooked, appendUnbooked); err != nil {
		return err
	}
	// Another answer may have folded meanwhile. Its rows may have other numbers: the count of changes tells.
	if _, err := tx.ExecContext(ctx, "INSERT INTO matching VALUES (?, ?, ?)", of[:], changes, sum.Sum(nil)); err != nil {
		return err
	}
	return tx.Commit()
}

// writeParts writes a list in parts.
func writeParts[T any](ctx context.Context, tx *sql.Tx, sum hash.Hash, kind int, list []T, encode func([]byte, T) []byte) error {
	var content []byte
	for number := 0; len(list) > 0; number++ {
		n := min(len(list), keptTogether)
		content = content[:0]
		for _, one := range list[:n] {
			content = encode(content, one)
		}
		sum.Write(content)
		if _, err := tx.ExecContext(ctx, "INSERT INTO matching_part VALUES (?, ?, ?)", kind, number, content); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// loadMatches reads the matches that were made of the same; nil: there are none.
func loadMatches(ctx context.Context, q querier, of archive.Digest, changes int64) (*matches, error) {
	var madeOf, want []byte
	var madeAt int64
	err := q.QueryRowContext(ctx, "SELECT of, changes, sum FROM matching").Scan(&madeOf, &madeAt, &want)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (!bytes.Equal(madeOf, of[:]) || madeAt != changes) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := q.QueryContext(ctx, "SELECT kind, content FROM matching_part ORDER BY kind, number")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	m, sum := &matches{}, sha256.New()
	for rows.Next() {
		var kind int
		var content sql.RawBytes
		if err := rows.Scan(&kind, &content); err != nil {
			return nil, err
		}
		sum.Write(content)
		switch kind {
		case docPart:
			m.docs = decodeParts(m.docs, content, docBytes, decodeDocument)
		case edgePart:
			m.edges = decodeParts(m.edges, content, edgeBytes, decodeEdge)
		case unbookedPart:
			m.unbooked = decodeParts(m.unbooked, content, unbookedBytes, decodeUnbooked)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	// What is called archived must not rest on a byte that the disk changed. The ledger is read again instead.
	if !bytes.Equal(sum.Sum(nil), want) {
		return nil, nil
	}
	return m, nil
}

func decodeParts[T any](list []T, content []byte, size int, decode func([]byte) T) []T {
	for ; len(content) >= size; content = content[size:] {
		list = append(list, decode(content))
	}
	return list
}

func appendDocument(b []byte, d document) []byte {
	doubts := byte(0)
	if d.doubts {
		doubts = 1
	}
	return append(append(b, d.key[:]...), byte(d.state), doubts)
}

func decodeDocument(b []byte) (d document) {
	n := copy(d.key[:], b)
	d.state, d.doubts = ledger.State(b[n]), b[n+1] != 0
	return d
}

func appendEdge(b []byte, e edge) []byte {
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, e.row), uint32(e.doc))
	return append(b, byte(e.kind), byte(e.diff))
}

func decodeEdge(b []byte) edge {
	return edge{binary.BigEndian.Uint32(b), int32(binary.BigEndian.Uint32(b[4:])), kind(b[8]), Difference(b[9])}
}

func appendUnbooked(b []byte, u unbooked) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(u.doc)), u.day[:]...)
}

func decodeUnbooked(b []byte) (u unbooked) {
	u.doc = int32(binary.BigEndian.Uint32(b))
	copy(u.day[:], b[4:])
	return u
}
