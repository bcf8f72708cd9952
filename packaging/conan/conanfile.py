# Conan's recipe: `conan create packaging/conan` builds the library of this tree and tries it.
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir


class SnugConan(ConanFile):
    name = "snug"
    description = "A general-purpose memory allocator: a malloc that fits the program snugly"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(snug VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "..", "..")
        names = ("CMakeLists.txt", "LICENSE", "src/*", "include/*", "bench/*", "trace/*", "compat/*", "scripts/snug-gdb.py")
        for name in names:
            copy(self, name, tree, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or str(self.settings.arch) not in ("x86_64", "armv8", "riscv64"):
            raise ConanInvalidConfiguration("snug is for 64-bit Linux")

    def configure(self):
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BUILD_TESTING"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="snug_shared")
        cmake.build(target="snug_static")

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        # Only one of the two stays: a linker would take the shared one, and Conan knows libraries by their bare name.
        rm(self, "libsnug.a" if self.options.shared else "libsnug.so*", os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "snug")
        self.cpp_info.set_property("cmake_target_name", "snug::snug" if self.options.shared else "snug::static")
        self.cpp_info.set_property("pkg_config_name", "snug" if self.options.shared else "snug-static")
        self.cpp_info.libs = ["snug"]
        self.cpp_info.system_libs = ["pthread", "dl"]
