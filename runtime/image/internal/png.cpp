// libpng's low-level interface: the simplified one would apply gamma and blend alpha.
//
// Errors leave libpng by longjmp: the functions that call it hold no objects of their own, and all
// state lies in png_file.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/image/internal/codecs.hpp"

namespace cedar::image::internal {

namespace {

class png_file {
 public:
  explicit png_file(std::span<const std::byte> file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return;
    png_set_read_fn(png_, this, on_read);
    // The size is compared with our own limit, right after the header.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  }
  ~png_file() { png_destroy_read_struct(&png_, &info_, nullptr); }
  png_file(const png_file&) = delete;
  png_file& operator=(const png_file&) = delete;

  bool read_header() {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }

  /// Into `rows`, 3 bytes a pixel, of a file whose header was read.
  bool read_pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != std::size_t{3} * png_get_image_width(png_, info_))
      png_error(png_, "pixels of an unknown kind");
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  image_header header() const {
    return {image_format::png, png_get_image_width(png_, info_), png_get_image_height(png_, info_)};
  }

  error failure() const {
    return {errc::invalid_argument, "the PNG file is damaged or truncated (" + message_ + ")"};
  }

 private:
  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto& self = *static_cast<png_file*>(png_get_io_ptr(png));
    if (count > self.left_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self.left_.data(), count);
    self.left_ = self.left_.subspan(count);
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    static_cast<png_file*>(png_get_error_ptr(png))->message_ = text;
    png_longjmp(png, 1);
  }

  static void on_warning(png_structp, png_const_charp) {}

  std::span<const std::byte> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string message_ = "no memory";
};

}  // namespace

result<image_header> png_header(std::span<const std::byte> file) {
  png_file png(file);
  if (!png.read_header()) return fail(png.failure());
  return png.header();
}

result<void> decode_png(std::span<const std::byte> file, rgb_image& out) {
  png_file png(file);
  if (!png.read_header()) return fail(png.failure());
  std::vector<png_bytep> rows(out.height);
  for (std::uint32_t y = 0; y < out.height; ++y) rows[y] = out.row(y);
  if (!png.read_pixels(rows.data())) return fail(png.failure());
  return {};
}

}  // namespace cedar::image::internal
