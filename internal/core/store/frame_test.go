package store

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValuesComeBack(t *testing.T) {
	value := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) any { return append([]byte{}, v...) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(value).Draw(t, "values")
		var b []byte
		for _, v := range want {
			b = appendValue(b, v)
		}
		for _, v := range want {
			got, rest, err := takeValue(b)
			if diff := cmp.Diff(v, got); err != nil || diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
			b = rest
		}
		if len(b) > 0 {
			t.Fatalf("%d bytes left", len(b))
		}
	})
}

// FuzzBackup reads hostile backups: an error at some point, never a panic or memory without bound.
func FuzzBackup(f *testing.F) {
	var whole bytes.Buffer
	w, err := newFrames(&whole)
	if err != nil {
		f.Fatal(err)
	}
	for _, err := range []error{
		w.putJSON(frameHeader, backupHeader{At: 1, Version: 2}),
		w.putJSON(frameTable, backupTable{Name: "audit", Columns: []string{"at"}, Kinds: []Kind{Int}}),
		w.put(frameRows, appendValue(appendValue(nil, int64(7)), []byte{1, 2})),
		w.w.Flush(),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Add(whole.Bytes())
	f.Add([]byte(frameMagic))
	f.Fuzz(func(t *testing.T, backup []byte) {
		u, err := newUnframer(bytes.NewReader(backup))
		if err != nil {
			return
		}
		for {
			_, payload, _, err := u.next()
			if err != nil {
				return
			}
			for len(payload) > 0 {
				if _, payload, err = takeValue(payload); err != nil {
					break
				}
			}
		}
	})
}

func TestFramesNoticeEveryByte(t *testing.T) {
	var kept bytes.Buffer
	w, err := newFrames(&kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.put(frameRows, []byte("some rows")); err != nil {
		t.Fatal(err)
	}
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range kept.Len() {
		damaged := bytes.Clone(kept.Bytes())
		damaged[i] ^= 1
		u, err := newUnframer(bytes.NewReader(damaged))
		if err == nil {
			_, _, _, err = u.next()
		}
		if err == nil {
			t.Errorf("byte %d was changed and nobody noticed", i)
		}
	}
}
