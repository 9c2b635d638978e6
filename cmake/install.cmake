# What `make install` puts where: both libraries, the headers, stoker.pc, the command and the shell
# completions that it writes itself. Nothing installed holds the prefix, so that the tree may be
# installed anywhere (cmake --install build --prefix DIR) and moved afterwards.
install(TARGETS stoker_static stoker_shared
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${STK_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stoker)

file(RELATIVE_PATH STK_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" STK_PC_PREFIX ${STK_PC_PREFIX})
configure_file(cmake/stoker.pc.in stoker.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/stoker.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET stoker)
  install(TARGETS stoker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# A program built for another machine cannot be asked.
if(TARGET stoker AND NOT CMAKE_CROSSCOMPILING)
  set(STK_COMPLETIONS ${CMAKE_BINARY_DIR}/completions)
  add_custom_command(
    OUTPUT ${STK_COMPLETIONS}/done
    COMMAND ${CMAKE_COMMAND} -DSTOKER=$<TARGET_FILE:stoker> -DOUT=${STK_COMPLETIONS}
            -P ${CMAKE_SOURCE_DIR}/cmake/completions.cmake
    DEPENDS stoker cmake/completions.cmake
    COMMENT "Writing shell completions"
    VERBATIM)
  add_custom_target(stoker_completions ALL DEPENDS ${STK_COMPLETIONS}/done)
  install(FILES ${STK_COMPLETIONS}/stoker.bash OPTIONAL RENAME stoker
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${STK_COMPLETIONS}/stoker.zsh OPTIONAL RENAME _stoker
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${STK_COMPLETIONS}/stoker.fish OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
