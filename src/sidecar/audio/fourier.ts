/** The Fourier transform of real samples, for one size; allocates only in its constructor. */

/**
 * Iterative, radix 2: the samples are packed as half as many complex numbers and separated again afterwards.
 */
export class RealFourier {
  readonly size: number;
  /** `size/2 + 1` bins, up to half the sample rate. */
  readonly real: Float64Array;
  readonly imaginary: Float64Array;
  readonly #half: number;
  readonly #cosine: Float64Array;
  readonly #sine: Float64Array;
  readonly #reversed: Uint16Array;
  readonly #re: Float64Array;
  readonly #im: Float64Array;

  /** `size`: a power of two from 8 to 131072. */
  constructor(size: number) {
    this.size = size;
    this.#half = size / 2;
    this.real = new Float64Array(this.#half + 1);
    this.imaginary = new Float64Array(this.#half + 1);
    this.#re = new Float64Array(this.#half);
    this.#im = new Float64Array(this.#half);
    this.#cosine = Float64Array.from({ length: this.#half }, (_, k) => Math.cos(2 * Math.PI * k / size));
    this.#sine = Float64Array.from({ length: this.#half }, (_, k) => -Math.sin(2 * Math.PI * k / size));
    const bits = Math.log2(this.#half);
    this.#reversed = Uint16Array.from({ length: this.#half }, (_, index) => {
      let reversed = 0;
      for (let bit = 0; bit < bits; bit += 1) reversed |= ((index >> bit) & 1) << (bits - 1 - bit);
      return reversed;
    });
  }

  /** Transforms `size` samples into `real` and `imaginary`, which are overwritten by the next call. */
  transform(samples: Float64Array): void {
    this.#pack(samples);
    this.#butterflies();
    this.#unpack();
  }

  #pack(samples: Float64Array): void {
    for (let index = 0; index < this.#half; index += 1) {
      const from = this.#reversed[index]! * 2;
      this.#re[index] = samples[from]!;
      this.#im[index] = samples[from + 1]!;
    }
  }

  #butterflies(): void {
    const re = this.#re;
    const im = this.#im;
    for (let span = 1; span < this.#half; span *= 2) {
      const step = this.#half / span; // twiddles are those of `size`, twice as many as the packed transform needs
      for (let offset = 0; offset < span; offset += 1) {
        const cosine = this.#cosine[offset * step]!;
        const sine = this.#sine[offset * step]!;
        for (let even = offset; even < this.#half; even += span * 2) {
          const odd = even + span;
          const turnedRe = re[odd]! * cosine - im[odd]! * sine;
          const turnedIm = re[odd]! * sine + im[odd]! * cosine;
          re[odd] = re[even]! - turnedRe;
          im[odd] = im[even]! - turnedIm;
          re[even] = re[even]! + turnedRe;
          im[even] = im[even]! + turnedIm;
        }
      }
    }
  }

  #unpack(): void {
    const half = this.#half;
    this.real[0] = this.#re[0]! + this.#im[0]!;
    this.imaginary[0] = 0;
    this.real[half] = this.#re[0]! - this.#im[0]!;
    this.imaginary[half] = 0;
    for (let k = 1; k < half; k += 1) {
      const evenRe = (this.#re[k]! + this.#re[half - k]!) / 2;
      const evenIm = (this.#im[k]! - this.#im[half - k]!) / 2;
      const oddRe = (this.#im[k]! + this.#im[half - k]!) / 2;
      const oddIm = (this.#re[half - k]! - this.#re[k]!) / 2;
      const cosine = this.#cosine[k]!;
      const sine = this.#sine[k]!;
      this.real[k] = evenRe + oddRe * cosine - oddIm * sine;
      this.imaginary[k] = evenIm + oddRe * sine + oddIm * cosine;
    }
  }
}
