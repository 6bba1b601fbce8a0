package pgmodel_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"docket/internal/testkit/pgmodel"
)

// conversation is a client that speaks well, as bytes.
func conversation(t testing.TB, messages ...pgproto3.FrontendMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range append([]pgproto3.FrontendMessage{&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "docket"}}}, messages...) {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func FuzzWire_Garbage(f *testing.F) {
	params := [][]byte{arrayOf(25, []byte("id")), arrayOf(1184, make([]byte, 8)), arrayOf(25, []byte(`{"a":[1,"\u00e9"]}`)), arrayOf(25, []byte("t")),
		arrayOf(23, make([]byte, 4)), arrayOf(20, make([]byte, 8)), arrayOf(23, make([]byte, 4))}
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 8, 4, 210, 22, 47})
	f.Add(conversation(f, &pgproto3.Query{String: "BEGIN"}, &pgproto3.Query{String: ";"}, &pgproto3.Terminate{}))
	f.Add(conversation(f, &pgproto3.Parse{Query: insertSQL}, &pgproto3.Describe{ObjectType: 'S'},
		&pgproto3.Bind{Parameters: params, ParameterFormatCodes: []int16{1}, ResultFormatCodes: []int16{1}},
		&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Execute{}, &pgproto3.Sync{}))
	f.Add(conversation(f, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S'}, &pgproto3.CopyData{}, &pgproto3.Sync{}))
	f.Add(conversation(f, &pgproto3.Query{String: "SELECT current_setting('transaction_read_only')"}, &pgproto3.Flush{}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > 1<<16 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := pgmodel.New(pgmodel.Config{MaxMessage: 1 << 16})
			conn, err := s.Dial(t.Context(), "tcp", "db:5432")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, conn)
			s.Close()
			if n := s.Sessions(); n != 0 {
				t.Fatalf("%d sessions are left", n)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Fatal("a closed server speaks")
			}
			_ = conn.Close()
		})
	})
}
