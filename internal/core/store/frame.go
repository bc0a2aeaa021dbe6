package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// The backup is a line of magic, then frames: length of the payload (4 bytes), its CRC-32C (4 bytes), payload. The
// first byte of a payload says what it is. The last frame carries a SHA-256 over everything before it.
const (
	frameMagic  = "CHANCERY BACKUP 1\n"
	frameHeader = 'H' // JSON of backupHeader
	frameTable  = 'T' // JSON of backupTable
	frameRows   = 'R' // rows of the table before, value by value
	frameEnd    = 'E' // JSON of backupEnd
	framePack   = 256 << 10
	frameMax    = 32 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frames writes a backup.
type frames struct {
	w   *bufio.Writer
	sum hash.Hash
}

func newFrames(w io.Writer) (*frames, error) {
	f := &frames{sum: sha256.New()}
	f.w = bufio.NewWriterSize(w, 1<<16)
	return f, f.raw([]byte(frameMagic))
}

func (f *frames) raw(b []byte) error {
	f.sum.Write(b)
	_, err := f.w.Write(b)
	return err
}

func (f *frames) put(kind byte, payload []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+1))
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, payload)
	head = append(binary.BigEndian.AppendUint32(head, sum), kind)
	return errors.Join(f.raw(head), f.raw(payload))
}

func (f *frames) putJSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.put(kind, b)
}

// unframer reads a backup. Nothing that it gives was changed by chance; lengths are bounded before memory is taken.
type unframer struct {
	r   *bufio.Reader
	sum hash.Hash
}

func newUnframer(r io.Reader) (*unframer, error) {
	u := &unframer{r: bufio.NewReaderSize(r, 1<<16), sum: sha256.New()}
	magic := make([]byte, len(frameMagic))
	if _, err := io.ReadFull(u.r, magic); err != nil || string(magic) != frameMagic {
		return nil, errors.New("this is no backup of a store")
	}
	u.sum.Write(magic)
	return u, nil
}

// next gives the next frame, and the SHA-256 of everything before it.
func (u *unframer) next() (kind byte, payload, before []byte, err error) {
	before = u.sum.Sum(nil)
	var head [8]byte
	if _, err := io.ReadFull(u.r, head[:]); err != nil {
		return 0, nil, nil, fmt.Errorf("the backup ends before its end: %w", err)
	}
	n, want := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
	if n == 0 || n > frameMax {
		return 0, nil, nil, fmt.Errorf("a frame of %d bytes: the backup is damaged", n)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(u.r, payload); err != nil {
		return 0, nil, nil, fmt.Errorf("the backup ends before its end: %w", err)
	}
	if crc32.Checksum(payload, castagnoli) != want {
		return 0, nil, nil, errors.New("a frame has another checksum than it was written with: the backup is damaged")
	}
	u.sum.Write(head[:])
	u.sum.Write(payload)
	return payload[0], payload[1:], before, nil
}

// takeValue reads what appendValue wrote, and gives the rest.
func takeValue(b []byte) (v any, rest []byte, err error) {
	bad := errors.New("a row is cut short")
	if len(b) == 0 {
		return nil, nil, bad
	}
	kind, b := b[0], b[1:]
	switch kind {
	case 'n':
		return nil, b, nil
	case 'i':
		if len(b) < 8 {
			return nil, nil, bad
		}
		return int64(binary.BigEndian.Uint64(b)), b[8:], nil
	case 't', 'b':
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return nil, nil, bad
		}
		text, rest := b[used:used+int(n)], b[used+int(n):]
		if kind == 't' {
			return string(text), rest, nil
		}
		return text, rest, nil
	}
	return nil, nil, fmt.Errorf("a value of kind %q", kind)
}
