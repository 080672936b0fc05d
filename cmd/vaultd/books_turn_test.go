// This test is inside the package: it holds the turn of an answer that is being
// made.
package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// I21: inside the daemon two answers about booked invoices are never made at once. One waits for the other, and not for ever.
func TestBooks_I21_OneAnswerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := view{booksTurn: make(chan struct{}, 1)}
		leave := kit.Value(v.takeBooksTurn(t.Context()))(t)
		begun := time.Now()
		if _, err := v.takeBooksTurn(t.Context()); !errors.Is(err, errOtherAnswer) || time.Since(begun) != booksPatience {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, leave)
		second := kit.Value(v.takeBooksTurn(t.Context()))(t)
		second()
	})
}
