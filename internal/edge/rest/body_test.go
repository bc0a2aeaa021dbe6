package rest

import (
	"encoding/pem"
	"testing"

	"pgregory.net/rapid"
)

func TestCertificatePEMIsWhatTheLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ders := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 300), 0, 4).Draw(t, "ders")
		want := ""
		for _, der := range ders {
			want += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		}
		if got := CertificatePEM(ders...); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func BenchmarkCertificatePEM(b *testing.B) {
	der := make([]byte, 1100)
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			CertificatePEM(der)
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		}
	})
}
